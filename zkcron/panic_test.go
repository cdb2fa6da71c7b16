package zkcron_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const panicEnv = "ZKCRON_TEST_PANICS_AT"

// A process of its own panics. The next one is told, and does not run that tick.
func TestAPanicIsRecordedAndEndsTheProcess(t *testing.T) {
	if addr := os.Getenv(panicEnv); addr != "" {
		s, err := zksync.Connect(context.Background(), addr, zksync.WithTimeout(2*time.Second), zksync.WithTracer(&says{}))
		require.NoError(t, err)
		c := zkcron.New(s, path)
		c.Every(job, time.Second, func(context.Context, zkcron.Tick) error { panic("out of cheese") })
		t.Fatal(c.Run(context.Background()))
	}
	srv := zktest.Start()
	defer srv.Close()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.timeout", "1m")
	cmd.Env = append(os.Environ(), panicEnv+"="+srv.Addr())
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "panic: out of cheese")
	require.Contains(t, string(out), "TestAPanicIsRecordedAndEndsTheProcess.func", "the stack of the function")
	require.Contains(t, string(out), "traced: panicked, panic: out of cheese")

	s, err := zksync.Connect(t.Context(), srv.Addr())
	require.NoError(t, err)
	defer s.Close()
	c := zkcron.New(s, path)
	last, err := c.Last(t.Context(), job)
	require.NoError(t, err)
	require.Equal(t, "panic: out of cheese", last.Err)
	require.False(t, last.Ended.IsZero())
	ctx, cancel := context.WithCancel(t.Context())
	c.Every(job, time.Second, func(_ context.Context, tick zkcron.Tick) error {
		require.Equal(t, last.Err, tick.LastErr)
		require.True(t, tick.Scheduled.After(last.Scheduled))
		cancel()
		return nil
	})
	require.ErrorIs(t, c.Run(ctx), context.Canceled)
}

// says is a tracer that says the outcomes.
type says struct{ outcomes }

func (*says) Tick(_ context.Context, d zksync.TickData) {
	fmt.Printf("traced: %s, %v\n", d.Outcome, d.Err)
}
