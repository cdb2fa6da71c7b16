package zktest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// timedTB notes when it was failed.
type timedTB struct {
	fakeTB
	mu sync.Mutex
	at []time.Time
}

func (f *timedTB) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = append(f.at, time.Now())
	f.fakeTB.Errorf(format, args...)
}

func TestAtTheLimitOfVirtualTimeTheTestFailsAndItsServerCloses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opts []zktest.Option
		says string
		want time.Duration
	}{
		{nil, "has taken 24h0m0s of virtual time", 24 * time.Hour},
		{[]zktest.Option{zktest.WithVirtualLimit(time.Minute)}, "has taken 1m0s of virtual time", time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			tb := &timedTB{fakeTB: fakeTB{TB: t}}
			srv := zktest.Run(tb, c.opts...)
			conn := srv.Connect(t, 10*time.Second)
			mustCreate(t, conn, "/dir", 0)
			srv.Intercept(zktest.On(zktest.Delete, "/dir").Times(2).Hold())
			done := createAsync(conn, "/dir/x", 0)
			require.NoError(t, <-done)
			srv.DropReplies(conn.SessionID())()
			srv.Delay(conn.SessionID(), time.Millisecond, 0)
			require.Error(t, conn.Delete("/dir", -1)) // nothing releases it
			require.Equal(t, c.want, time.Since(began))
			tb.finish()
			require.Len(t, tb.errors, 1, "what is left over is of no interest")
			require.Equal(t, began.Add(c.want), tb.at[0])
			for _, want := range []string{
				"zktest: the test " + t.Name() + " " + c.says,
				"fault: 0x1dc6acfac000001 is delayed by 1ms and 0s\n",
				"rule: On(delete, \"/dir\").Times(2) at limit_test.go:49 has matched 1, acted on 1, holds 1\n",
				"session 0x1dc6acfac000001: connected",
				"  /dir\n    /x\n",
				"create /dir/x zxid",
				"zktest_test.TestAtTheLimitOfVirtualTimeTheTestFailsAndItsServerCloses",
			} {
				require.Contains(t, tb.errors[0], want)
			}
			require.NotContains(t, tb.errors[0], "engine.", "goroutines of the server")
		})
	}
}

func TestAtTheLimitAWaitForAServerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &timedTB{fakeTB: fakeTB{TB: t}}
		e := zktest.RunEnsemble(tb, 3, zktest.WithVirtualLimit(time.Hour))
		e.Session(t)
		e.Lag(0)
		e.Isolate(1)
		require.EqualError(t, e.Server(2).WaitFor(context.Background(), func() bool { return false }), "zktest: the server is closed")
		tb.finish()
		require.Len(t, tb.errors, 1)
		for _, want := range []string{"has taken 1h0m0s", "member 0: fault: the member lags\n", "member 1: fault: the member is isolated\n", "member 2: tree:\n", "session 0x"} {
			require.Contains(t, tb.errors[0], want)
		}
	})
}

func TestATestThatEndsBeforeItsLimitDoesNotFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tb := &timedTB{fakeTB: fakeTB{TB: t}}
		zktest.Run(tb, zktest.WithVirtualLimit(time.Minute))
		zktest.RunEnsemble(tb, 3, zktest.WithVirtualLimit(time.Minute))
		time.Sleep(time.Minute - 1)
		tb.finish()
		time.Sleep(48 * time.Hour)
		require.Empty(t, tb.errors)
	})
}

func TestTheLimitOfVirtualTimeIsForBubblesOnly(t *testing.T) {
	t.Parallel()
	tb := &timedTB{fakeTB: fakeTB{TB: t}}
	srv := zktest.Run(tb, zktest.WithVirtualLimit(1))
	dialFor(t, srv)
	srv.Advance(48 * time.Hour)
	tb.finish()
	require.Len(t, tb.errors, 1)
	require.Contains(t, tb.errors[0], "left over", "the client, which is closed later")
}

// What TestStuck does: in a process of its own, which is to fail.
const stuckEnv = "ZKTEST_STUCK"

func TestStuck(t *testing.T) {
	how := os.Getenv(stuckEnv)
	if how == "" {
		return
	}
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithVirtualLimit(time.Minute))
		a, b := srv.Session(t), srv.Session(t)
		zksync.NewMutex(a, "/lock").Lock()
		switch how {
		case "lock":
			zksync.NewMutex(b, "/lock").Lock()
		case "failed":
			t.Error("something else")
		}
		<-t.Context().Done() // never, while the test runs
	})
}

// failing runs a test that fails, in a process of its own, and returns what it prints.
func failing(t *testing.T, test, env string) string {
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.timeout=30s")
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	return string(out)
}

func TestATestThatNothingElseEndsEndsWithAPanicThatSaysWhy(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"lock", "channel", "failed"} {
		out := failing(t, "TestStuck", stuckEnv+"="+how)
		require.Equal(t, how == "failed", strings.Contains(out, "the test had failed before that; go test -v prints its messages at once"))
		require.Contains(t, out, "panic: zktest: the test TestStuck has taken 1m0s of virtual time: it waits for what does not come, or needs more (WithVirtualLimit)")
		require.Contains(t, out, "/lock")
		require.Contains(t, out, "session 0x1dc6acfac000002: connected")
		require.Contains(t, out, "zktest_test.TestStuck.func1")
		require.NotContains(t, out, "go-zookeeper/zk.", "goroutines of the client")
		require.Less(t, strings.Count(out, "\n"), 100)
	}
}
