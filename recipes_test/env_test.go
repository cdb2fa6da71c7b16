// Package recipes_test holds the black-box suites of the recipes. Every test is written once and runs in
// two places: on the in-process server in virtual time, where instants are exact, and, when
// MENAGERIE_TEST_SERVERS holds a connect string, on those real servers in real time.
//
// The number in a test's name is that of a behaviour in docs/behaviours.md.
package recipes_test

import (
	"context"
	"os"
	"path"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/ensemble"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// lockPath is the lock that a test contends for unless it needs several.
const lockPath = "/locks/a"

// env is where a test runs.
type env struct {
	t       *testing.T
	srv     *zktest.Server // nil on real servers: faults inside the server are injected only where it is not
	virtual bool           // inside a synctest bubble: time stands still while anybody works

	servers string // without chroot; empty inside a bubble, where there are no sockets
	chroot  string
	admin   *zksync.Session // above the chroot, with the leader of real servers

	late time.Duration // by which the pulse of this process was late when the test began, on real servers

	mu     sync.Mutex
	cables map[*zksync.Session]*cable
}

// each runs f on the in-process server in virtual time, or on the real servers if there are any, together
// with others.
func each(t *testing.T, f func(t *testing.T, v *env), opts ...zktest.Option) {
	t.Helper()
	if servers := os.Getenv(ensemble.ServersEnv); servers != "" {
		t.Parallel()
		f(t, realEnv(t, servers))
		return
	}
	bubble(t, f, opts)
}

// eachAlone is each for tests that count what whole servers, or the process, do: nothing else runs then.
func eachAlone(t *testing.T, f func(t *testing.T, v *env), opts ...zktest.Option) {
	t.Helper()
	if servers := os.Getenv(ensemble.ServersEnv); servers != "" {
		// How long the test holds a lock there depends on the machine, and what it counts must not.
		after := queue.WatchAfter
		t.Cleanup(func() { queue.WatchAfter = after })
		queue.WatchAfter = time.Hour
		f(t, realEnv(t, servers))
		return
	}
	bubble(t, f, opts)
}

// inProcess is for tests that look at, or break, something inside the server. They run on the in-process
// server only: a run on real servers leaves them out and says so.
func inProcess(t *testing.T, f func(t *testing.T, v *env), opts ...zktest.Option) {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) != "" {
		t.Skip("injects faults inside the server, so it ran with the in-process tests")
	}
	bubble(t, f, opts)
}

func bubble(t *testing.T, f func(t *testing.T, v *env), opts []zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &env{t: t, srv: zktest.Run(t, opts...), virtual: true})
	})
}

// onOwnServer is for tests that patch the data of a real server while it is down. They run only where
// real servers are asked for; MENAGERIE_TEST_SERVERS of all others stay untouched.
func onOwnServer(t *testing.T, f func(t *testing.T, v *env, e *ensemble.Ensemble)) {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) == "" {
		t.Skip("patches the data of a real server, so it runs with make test-ensemble")
	}
	t.Parallel()
	e := ensemble.ForTest(t, 1)
	f(t, realEnv(t, e.Connect()), e)
}

// session opens a session that ends with the test.
func (v *env) session(opts ...zksync.Option) *zksync.Session {
	v.t.Helper()
	if v.virtual {
		return v.srv.Session(v.t, opts...)
	}
	c := &cable{}
	all := append([]zksync.Option{zksync.WithDialer(c.dial), zksync.WithTimeout(lifetime)}, opts...)
	ctx, cancel := context.WithTimeout(context.Background(), v.patience())
	defer cancel()
	s, err := zksync.Connect(ctx, v.connectString(), all...)
	require.NoError(v.t, err)
	v.t.Cleanup(func() {
		c.plug() // or Close would wait for its answer in vain
		require.NoError(v.t, s.Close())
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cables == nil {
		v.cables = make(map[*zksync.Session]*cable)
	}
	v.cables[s] = c
	return s
}

// tapped opens a session, which ends with the test, on a connection that is not ours. As soon as that is there its
// library looks at which watches to set again, while answers may come: a data race of its own. So it is waited until
// it has looked, before anybody asks anything.
func (v *env) tapped() *zksync.Session {
	v.t.Helper()
	conn := v.srv.Connect(v.t, 10*time.Second)
	v.quiet()
	s, err := zksync.Tap(context.Background(), conn)
	require.NoError(v.t, err)
	v.t.Cleanup(func() { require.NoError(v.t, s.Close()) })
	return s
}

// mutexes opens n sessions and names the same lock through each.
func (v *env) mutexes(n int, opts ...zksync.Option) []*zksync.Mutex {
	v.t.Helper()
	ms := make([]*zksync.Mutex, n)
	for i := range ms {
		ms[i] = zksync.NewMutex(v.session(), lockPath, opts...)
	}
	return ms
}

func (v *env) connectString() string { return v.servers + v.chroot }

// patience is how long something may take that is expected to happen: a limit for what hangs, and no
// measure of how fast anything is.
func (v *env) patience() time.Duration {
	if v.virtual {
		return time.Hour
	}
	return 2 * time.Minute
}

// span is a duration that in real time is longer, because something has to happen meanwhile that in
// virtual time takes none.
func (v *env) span(virtual, realTime time.Duration) time.Duration {
	if v.virtual {
		return virtual
	}
	return realTime
}

// children lists a directory; nil if there are none or the directory does not exist.
func (v *env) children(dir string) []string {
	v.t.Helper()
	if v.srv != nil {
		return v.srv.Children(dir)
	}
	return v.adminChildren(v.chroot + dir)
}

// queued waits until the directory has n children.
func (v *env) queued(dir string, n int) {
	v.t.Helper()
	if v.srv != nil {
		zktest.WaitChildren(v.t, v.srv, dir, n)
		return
	}
	v.eventually(func() bool { return len(v.children(dir)) == n }, "%s has not got %d children", dir, n)
}

// settled waits until the directory has n children and nobody has anything left to do: whatever the
// waiters read after they queued, they have read.
func (v *env) settled(dir string, n int) {
	v.t.Helper()
	v.queued(dir, n)
	v.quiet()
}

// quiet waits until nothing happens any more by itself.
func (v *env) quiet() {
	v.t.Helper()
	if v.virtual {
		synctest.Wait()
		return
	}
	v.quietWires()
}

// eventually asks again and again, in real time.
func (v *env) eventually(cond func() bool, format string, args ...any) {
	v.t.Helper()
	deadline := time.Now().Add(v.patience())
	for wait := time.Millisecond; !cond(); wait = min(2*wait, 16*time.Millisecond) {
		if time.Now().After(deadline) {
			require.Failf(v.t, "not within "+v.patience().String(), format, args...)
		}
		<-time.After(wait)
	}
}

// remove deletes a node by hand.
func (v *env) remove(node string) {
	v.t.Helper()
	if v.srv != nil {
		v.srv.Delete(node)
		return
	}
	require.NoError(v.t, v.admin.Conn().Delete(v.chroot+node, -1))
	v.flush() // some recipes look without a sync
}

// put makes a persistent node by hand, and its parents.
func (v *env) put(node string, data string) {
	v.t.Helper()
	if parent := path.Dir(node); parent != "/" && !v.exists(parent) {
		v.put(parent, "")
	}
	if v.srv != nil {
		v.srv.Create(node, []byte(data), 0, 0)
		return
	}
	v.adminCreate(v.chroot+node, data)
	v.flush()
}

func (v *env) exists(node string) bool {
	v.t.Helper()
	if v.srv != nil {
		_, ok := v.srv.Node(node)
		return ok
	}
	return v.adminExists(v.chroot + node)
}

// data reads a node by hand.
func (v *env) data(node string) string {
	v.t.Helper()
	if v.srv != nil {
		n, _ := v.srv.Node(node)
		return string(n.Data)
	}
	return v.adminData(v.chroot + node)
}

// took checks how long something took that should take want: exactly that in virtual time.
func (v *env) took(start time.Time, want time.Duration, what string) {
	v.t.Helper()
	got := time.Since(start)
	if v.virtual {
		require.Equal(v.t, want, got, what)
		return
	}
	require.GreaterOrEqual(v.t, got, want-time.Millisecond, what)
	require.LessOrEqual(v.t, got, want+v.slack(), what)
}

// within checks a duration that has an upper bound only.
func (v *env) within(start time.Time, limit time.Duration, what string) {
	v.t.Helper()
	if !v.virtual {
		limit += v.slack()
	}
	require.LessOrEqual(v.t, time.Since(start), limit, what)
}

// atOnce checks that something took no time; in real time, that it did not wait for a session to end.
func (v *env) atOnce(start time.Time, what string) {
	v.t.Helper()
	v.within(start, 0, what)
}
