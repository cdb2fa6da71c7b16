package proving

import (
	"context"
	"os"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Env is where a test runs.
type Env struct {
	T       *testing.T     // the test that runs there
	Server  *zktest.Server // nil on real servers: faults inside the server are injected only where it is not
	Virtual bool           // inside a synctest bubble: time stands still while anybody works

	servers string          // without chroot; empty inside a bubble, where there are no sockets
	Chroot  string          // below which everything of this test is on real servers
	Admin   *zksync.Session // above the chroot, with the leader of real servers

	late time.Duration // by which the pulse of this process was late when the test began, on real servers

	mu     sync.Mutex
	cables map[*zksync.Session]*Cable
}

// Each runs f on the in-process server in virtual time, or on the real servers if there are any, together
// with others.
func Each(t *testing.T, f func(t *testing.T, v *Env), opts ...zktest.Option) {
	t.Helper()
	if servers := os.Getenv(ensemble.ServersEnv); servers != "" {
		t.Parallel()
		f(t, RealEnv(t, servers))
		return
	}
	bubble(t, f, opts)
}

// EachRelease is Each, and then the same on in-process servers of other releases, in subtests: for what watches, which servers
// before 3.6 refuse in part, and handle otherwise since 3.9.
func EachRelease(t *testing.T, f func(t *testing.T, v *Env), opts ...zktest.Option) {
	t.Helper()
	Each(t, f, opts...)
	otherReleases(t, f, opts)
}

// InEachRelease is InProcess, and then the same on other releases.
func InEachRelease(t *testing.T, f func(t *testing.T, v *Env), opts ...zktest.Option) {
	t.Helper()
	InProcess(t, f, opts...)
	otherReleases(t, f, opts)
}

func otherReleases(t *testing.T, f func(t *testing.T, v *Env), opts []zktest.Option) {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) != "" {
		return
	}
	for _, version := range []string{"3.5", "3.9"} {
		t.Run(version, func(t *testing.T) { bubble(t, f, append(slices.Clone(opts), zktest.WithVersion(version))) })
	}
}

// Together has a test whose parts are subtests run together with others where time is real: the next one need not wait for
// the last of the parts.
func Together(t *testing.T) {
	if os.Getenv(ensemble.ServersEnv) != "" {
		t.Parallel()
	}
}

// EachAlone is Each for tests that count goroutines or requests: nothing else runs in this process then.
func EachAlone(t *testing.T, f func(t *testing.T, v *Env), opts ...zktest.Option) {
	t.Helper()
	if servers := os.Getenv(ensemble.ServersEnv); servers != "" {
		// How long the test holds a lock there depends on the machine, and what it counts must not.
		after := queue.WatchAfter
		t.Cleanup(func() { queue.WatchAfter = after })
		queue.WatchAfter = time.Hour
		f(t, RealEnv(t, servers))
		return
	}
	bubble(t, f, opts)
}

// InProcess is for tests that look at, or break, something inside the server. They run on the in-process
// server only: a run on real servers leaves them out and says so.
func InProcess(t *testing.T, f func(t *testing.T, v *Env), opts ...zktest.Option) {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) != "" {
		t.Skip("injects faults inside the server, so it ran with the in-process tests")
	}
	bubble(t, f, opts)
}

func bubble(t *testing.T, f func(t *testing.T, v *Env), opts []zktest.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &Env{T: t, Server: zktest.Run(t, opts...), Virtual: true})
	})
}

// OnOwnServer is for tests that patch the data of a real server while it is down. They run only where
// real servers are asked for; MENAGERIE_TEST_SERVERS of all others stay untouched.
func OnOwnServer(t *testing.T, f func(t *testing.T, v *Env, e *ensemble.Ensemble)) {
	t.Helper()
	if os.Getenv(ensemble.ServersEnv) == "" {
		t.Skip("patches the data of a real server, so it runs with make test-ensemble")
	}
	t.Parallel()
	e := ensemble.ForTest(t, 1)
	f(t, RealEnv(t, e.Connect()), e)
}

// Session opens a session that ends with the test.
func (v *Env) Session(opts ...zksync.SessionOption) *zksync.Session {
	v.T.Helper()
	if v.Virtual {
		return v.Server.Session(v.T, opts...)
	}
	c := &Cable{}
	all := append([]zksync.SessionOption{zksync.WithDialer(c.Dial), zksync.WithTimeout(Lifetime)}, opts...)
	ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
	defer cancel()
	s, err := zksync.Connect(ctx, v.ConnectString(), all...)
	require.NoError(v.T, err)
	v.T.Cleanup(func() {
		c.Plug() // or Close would wait for its answer in vain
		require.NoError(v.T, s.Close())
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cables == nil {
		v.cables = make(map[*zksync.Session]*Cable)
	}
	v.cables[s] = c
	return s
}

// Mutexes opens n sessions and names the same lock through each.
func (v *Env) Mutexes(n int, opts ...zksync.Option) []*zksync.Mutex {
	v.T.Helper()
	ms := make([]*zksync.Mutex, n)
	for i := range ms {
		ms[i] = zksync.NewMutex(v.Session(), LockPath, opts...)
	}
	return ms
}

// ConnectString is that of the servers, with the chroot of this test.
func (v *Env) ConnectString() string { return v.servers + v.Chroot }

// Patience is how long something may take that is expected to happen: a limit for what hangs, and no
// measure of how fast anything is.
func (v *Env) Patience() time.Duration {
	if v.Virtual {
		return time.Hour
	}
	return 2 * time.Minute
}

// Span is a duration that in real time is longer, because something has to happen meanwhile that in
// virtual time takes none.
func (v *Env) Span(virtual, realTime time.Duration) time.Duration {
	if v.Virtual {
		return virtual
	}
	return realTime
}

// Children lists a directory; nil if there are none or the directory does not exist.
func (v *Env) Children(dir string) []string {
	v.T.Helper()
	if v.Server != nil {
		return v.Server.Children(dir)
	}
	return v.adminChildren(v.Chroot + dir)
}

// Queued waits until the directory has n children.
func (v *Env) Queued(dir string, n int) {
	v.T.Helper()
	if v.Server != nil {
		zktest.WaitChildren(v.T, v.Server, dir, n)
		return
	}
	v.Eventually(func() bool { return len(v.Children(dir)) == n }, "%s has not got %d children", dir, n)
}

// Settled waits until the directory has n children and nobody has anything left to do: whatever the
// waiters read after they queued, they have read.
func (v *Env) Settled(dir string, n int) {
	v.T.Helper()
	v.Queued(dir, n)
	v.Quiet()
}

// Quiet waits until nothing happens any more by itself.
func (v *Env) Quiet() {
	v.T.Helper()
	if v.Virtual {
		synctest.Wait()
		return
	}
	v.quietWires()
}

// Eventually asks again and again, in real time: real servers tell nobody that something is so.
func (v *Env) Eventually(cond func() bool, format string, args ...any) {
	v.T.Helper()
	deadline := time.Now().Add(v.Patience())
	for wait := time.Millisecond; !cond(); wait = min(2*wait, 16*time.Millisecond) {
		if time.Now().After(deadline) {
			require.Failf(v.T, "not within "+v.Patience().String(), format, args...)
		}
		<-time.After(wait)
	}
}

// Remove deletes a node externally.
func (v *Env) Remove(node string) {
	v.T.Helper()
	if v.Server != nil {
		v.Server.Delete(node)
		return
	}
	require.NoError(v.T, v.Admin.Conn().Delete(v.Chroot+node, -1))
	v.Flush() // some recipes look without a sync
}

// Put makes a persistent node externally, and its parents.
func (v *Env) Put(node string, data string) {
	v.T.Helper()
	if parent := path.Dir(node); parent != "/" && !v.Exists(parent) {
		v.Put(parent, "")
	}
	if v.Server != nil {
		v.Server.Create(node, []byte(data), 0, 0)
		return
	}
	v.adminCreate(v.Chroot+node, data)
	v.Flush()
}

// Exists looks for a node externally.
func (v *Env) Exists(node string) bool {
	v.T.Helper()
	if v.Server != nil {
		_, ok := v.Server.Node(node)
		return ok
	}
	return v.adminExists(v.Chroot + node)
}

// Data reads a node externally.
func (v *Env) Data(node string) string {
	v.T.Helper()
	if v.Server != nil {
		n, _ := v.Server.Node(node)
		return string(n.Data)
	}
	return v.adminData(v.Chroot + node)
}

// Took checks how long something took that should take want: exactly that in virtual time.
func (v *Env) Took(start time.Time, want time.Duration, what string) {
	v.T.Helper()
	got := time.Since(start)
	if v.Virtual {
		require.Equal(v.T, want, got, what)
		return
	}
	require.GreaterOrEqual(v.T, got, want-time.Millisecond, what)
	require.LessOrEqual(v.T, got, want+v.Slack(), what)
}

// Within checks a duration that has an upper bound only.
func (v *Env) Within(start time.Time, limit time.Duration, what string) {
	v.T.Helper()
	if !v.Virtual {
		limit += v.Slack()
	}
	require.LessOrEqual(v.T, time.Since(start), limit, what)
}

// AtOnce checks that something took no time; in real time, that it did not wait for a session to end.
func (v *Env) AtOnce(start time.Time, what string) {
	v.T.Helper()
	v.Within(start, 0, what)
}

// Connect opens a session that the test closes, or none.
func (v *Env) Connect(ctx context.Context, opts ...zksync.SessionOption) (*zksync.Session, error) {
	if v.Virtual {
		opts = append([]zksync.SessionOption{zksync.WithDialer(v.Server.DialContext)}, opts...)
		return zksync.Connect(ctx, "zk1", opts...)
	}
	return zksync.Connect(ctx, v.ConnectString(), opts...)
}
