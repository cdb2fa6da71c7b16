package zkflight_test

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zktest"
)

// crashEnv has a test of this process crash.
const crashEnv = "MENAGERIE_TEST_CRASH"

// crashes runs the test again in a process of its own, which must die of f's panic.
func crashes(t *testing.T, f func(t *testing.T, fl *zkflight.Flight[int])) {
	t.Helper()
	if os.Getenv(crashEnv) != "" {
		srv := zktest.Run(t)
		f(t, zkflight.New[int](srv.Session(t), "/flights"))
		time.Sleep(time.Minute) // the panic is on its way, in another goroutine
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), crashEnv+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Contains(t, string(out), "a panic of the function's own")
	require.NotContains(t, string(out), "test timed out")
}

func panics(context.Context) (int, error) { panic("a panic of the function's own") }

func TestAPanicForAChannelEndsTheProcess(t *testing.T) {
	crashes(t, func(t *testing.T, f *zkflight.Flight[int]) {
		f.DoChan(context.Background(), "k", panics)
	})
}

func TestAPanicThatNobodyWaitsForEndsTheProcess(t *testing.T) {
	crashes(t, func(t *testing.T, f *zkflight.Flight[int]) {
		ctx, cancel := context.WithCancel(context.Background())
		_, err, _ := f.Do(ctx, "k", func(ctx context.Context) (int, error) {
			cancel()
			<-ctx.Done()
			return panics(ctx)
		})
		require.ErrorIs(t, err, context.Canceled)
	})
}
