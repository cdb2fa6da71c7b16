//go:build unix

package main

import (
	"context"
	"encoding/json"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"os"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// session is one of this process, whose recipes ls shows.
func (s *server) session(t *testing.T) *zksync.Session {
	t.Helper()
	z, err := zksync.Connect(t.Context(), s.addr, zksync.WithName("test"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = z.Close() })
	return z
}

// ls returns what the command ls prints.
func (s *server) ls(t *testing.T, args ...string) string {
	t.Helper()
	p := run(t, append([]string{"ls", "--servers", s.addr}, args...)...)
	p.succeeded()
	return p.stdout.String()
}

// says waits until ls prints all of texts of path, which may not exist yet: what runs in the background makes it.
func (s *server) says(t *testing.T, path string, texts ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		p := run(t, "ls", "--servers", s.addr, path)
		require.Zero(c, p.cmd.ProcessState.ExitCode(), "%s", p.stderr.String())
		for _, text := range texts {
			assert.Contains(c, p.stdout.String(), text)
		}
	}, patience, pause, "%s", path)
}

// listed is what ls --json says of path in its directory.
func (s *server) listed(t *testing.T, dir, path string) tree.Object {
	t.Helper()
	var all []tree.Object
	require.NoError(t, json.Unmarshal([]byte(s.ls(t, "--json", dir)), &all))
	for _, o := range all {
		if o.Path == path {
			return o
		}
	}
	require.Fail(t, "not listed", "%s in %v", path, all)
	return tree.Object{}
}

// background runs f in the background until the test ends.
func background(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// shown is what ls shows: a server whose directory /r has recipes of every kind.
type shown struct {
	*server
	all  *testing.T // what is set up stays until it ends, for the listing of the directory
	z    *zksync.Session
	host string
}

func TestEveryKindOfRecipeIsToldByItsNodes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	r := &shown{server: s, all: t, z: s.session(t), host: host}
	for _, kind := range []struct {
		name   string
		isTold func(r *shown, t *testing.T)
	}{
		{"lock", (*shown).lock},
		{"rwlock", (*shown).rwlock},
		{"semaphore", (*shown).semaphore},
		{"election", (*shown).election},
		{"once", (*shown).once},
		{"barrier", (*shown).barrier},
		{"double barrier", (*shown).doubleBarrier},
		{"latch", (*shown).latch},
		{"gate", (*shown).gate},
		{"phaser", (*shown).phaser},
		{"wait group", (*shown).waitGroup},
		{"condition", (*shown).condition},
		{"flight", (*shown).flight},
		{"plain nodes", (*shown).plainNodes},
		{"the directory", (*shown).directory}, // of all those above
	} {
		t.Run(kind.name, func(t *testing.T) { kind.isTold(r, t) })
	}
}

func (r *shown) lock(t *testing.T) {
	ctx := r.all.Context()
	_, err := zksync.NewMutex(r.z, "/r/lock").LockContext(ctx)
	require.NoError(t, err)
	r.says(t, "/r/lock", "lock", "held", "test@"+r.host)
	// It may be the lock of a once.
	r.says(t, "/r", "/r: once, run by "+r.host, "or a directory", "/r/lock  lock  held by "+r.host)
	o := r.listed(t, "/r", "/r/lock")
	require.Equal(t, []string{"lock", "held"}, []string{o.Kind, o.State})
	require.Contains(t, o.Detail, "held by "+r.host+" pid ")
	require.Len(t, o.Entries, 1)
}

func (r *shown) rwlock(t *testing.T) {
	ctx := r.all.Context()
	rw := zkrwmutex.New(r.z, "/r/rw")
	_, err := rw.RLockContext(ctx)
	require.NoError(t, err)
	background(r.all, func(ctx context.Context) { _, _ = rw.LockContext(ctx) })
	r.says(t, "/r/rw", "read   held", "write  waiting")
	require.Contains(t, r.listed(t, "/r", "/r/rw").Detail, "held for reading by "+r.host)
	require.Equal(t, "rwlock", r.listed(t, "/r", "/r/rw").Kind)
}

func (r *shown) semaphore(t *testing.T) {
	ctx := r.all.Context()
	w := zksemaphore.NewWeighted(r.z, "/r/sem", 8)
	_, err := w.AcquireLease(ctx, 3)
	require.NoError(t, err)
	_, err = w.AcquireLease(ctx, 2)
	require.NoError(t, err)
	background(r.all, func(ctx context.Context) { _, _ = w.AcquireLease(ctx, 7) })
	r.says(t, "/r/sem", "semaphore, 5 of 8 permits held", "and 1 other; 1 waits", "PERMITS", "permit  waiting  7")
	require.NoError(t, w.Resize(ctx, 9))
	o := r.listed(t, "/r", "/r/sem")
	require.Equal(t, []int64{5, 9}, []int64{*o.Count, *o.Total})
	require.EqualValues(t, 3, o.Entries[0].Permits)
	require.EqualValues(t, 3, contenders(t, r.addr, "/r/sem")[0].Permits)
}

func (r *shown) election(t *testing.T) {
	ctx := r.all.Context()
	_, err := zkelection.New(r.z, "/r/elect", zkelection.Candidate{ID: "web-3:8080"}).Campaign(ctx)
	require.NoError(t, err)
	background(r.all, func(ctx context.Context) {
		_, _ = zkelection.New(r.z, "/r/elect", zkelection.Candidate{ID: "web-4:8080"}).Campaign(ctx)
	})
	r.says(t, "/r/elect", "election, led by web-3:8080", "web-4:8080")
	require.Equal(t, "web-4:8080", contenders(t, r.addr, "/r/elect")[1].ID)
}

func (r *shown) once(t *testing.T) {
	running := zkonce.New(r.z, "/r/running")
	background(r.all, func(ctx context.Context) {
		_, _ = running.DoContext(ctx, func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	})
	r.says(t, "/r/running", "once, run by "+r.host, "or a directory")
	run(t, "once", "/r/done", "--servers", r.addr, "--", "true").succeeded()
	r.says(t, "/r/done", "once, done by true on "+r.host)
	require.Equal(t, "done", r.listed(t, "/r", "/r/done").State)
}

func (r *shown) barrier(t *testing.T) {
	b := zkbarrier.NewBarrier(r.z, "/r/barrier", 3)
	background(r.all, func(ctx context.Context) { _, _ = b.Await(ctx) })
	r.says(t, "/r/barrier", "barrier, 1 of 3 have arrived", "party  waiting  test@"+r.host)
}

func (r *shown) doubleBarrier(t *testing.T) {
	ctx := r.all.Context()
	b := zkbarrier.NewDoubleBarrier(r.z, "/r/double", 2)
	background(r.all, func(ctx context.Context) { _ = b.Enter(ctx) })
	r.says(t, "/r/double", "double barrier, 1 of 2 have arrived")
	require.NoError(t, zkbarrier.NewDoubleBarrier(r.z, "/r/double", 2).Enter(ctx))
	r.says(t, "/r/double", "double barrier, open: 2 of 2 have not left")
}

func (r *shown) latch(t *testing.T) {
	ctx := r.all.Context()
	l := zklatch.New(r.z, "/r/latch", 2)
	require.NoError(t, l.CountDown(ctx))
	r.says(t, "/r/latch", "latch, closed: 1 of 2 events counted down")
	require.NoError(t, l.CountDown(ctx))
	r.says(t, "/r/latch", "latch, open: all of 2 events counted down")
	require.NoError(t, zklatch.New(r.z, "/r/removed", 2).CountDown(ctx))
	require.NoError(t, r.z.Conn().Delete("/r/removed/closed-of-2", -1))
	r.says(t, "/r/removed", "latch, broken: closed-of-2 was removed externally")
}

func (r *shown) gate(t *testing.T) {
	ctx := r.all.Context()
	g := zklatch.NewGate(r.z, "/r/gate")
	require.NoError(t, g.Close(ctx))
	r.says(t, "/r/gate", "gate, closed by "+r.host)
	_, err := r.z.Conn().Create("/r/gate/closed/01234567-89ab-8def-8123-456789abcdef", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err) // whoever opens it does that first
	r.says(t, "/r/gate", "gate, closed by "+r.host)
	require.NoError(t, g.Open(ctx))
	r.says(t, "/r/gate", "open gate, or anything else")
}

func (r *shown) phaser(t *testing.T) {
	ctx := r.all.Context()
	p := zkphaser.New(r.z, "/r/phaser")
	_, err := p.BulkRegister(ctx, 2)
	require.NoError(t, err)
	_, err = p.Arrive(ctx)
	require.NoError(t, err)
	r.says(t, "/r/phaser", "phaser, phase 0: 1 of 2 have arrived")
}

func (r *shown) waitGroup(t *testing.T) {
	ctx := r.all.Context()
	g := zkwaitgroup.New(r.z, "/r/group")
	require.NoError(t, g.AddContext(ctx, 3))
	r.says(t, "/r/group", "wait group, 3 members not done", "living")
}

func (r *shown) condition(t *testing.T) {
	ctx := r.all.Context()
	m := zksync.NewMutex(r.z, "/r/monitor")
	l, err := m.LockContext(ctx)
	require.NoError(t, err)
	background(r.all, func(ctx context.Context) { _, _ = zkcond.New(m, "/r/cond").WaitContext(ctx, l) })
	r.says(t, "/r/cond", "condition, 1 waits, 0 signals not used up")
}

func (r *shown) flight(t *testing.T) {
	f := zkflight.New[string](r.z, "/r/flight")
	background(r.all, func(ctx context.Context) {
		_, _, _ = f.Do(ctx, "key", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	})
	r.says(t, "/r/flight", "flight", "/r/flight/key", "run by "+r.host)
	r.says(t, "/r/flight/key", "flight key, run by "+r.host)
}

func (r *shown) plainNodes(t *testing.T) {
	_, err := r.z.Conn().Create("/r/plain", []byte("hello"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, err = r.z.Conn().Create("/r/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	r.says(t, "/r/plain", "node, 5 bytes of data, nothing below")
	r.says(t, "/r/mine", "node, 0 bytes, of session 0x")
}

func (r *shown) directory(t *testing.T) {
	out := r.ls(t, "/r")
	for _, kind := range []string{"lock", "rwlock", "semaphore", "election", "once", "barrier", "double barrier", "latch", "phaser", "wait group", "condition", "flight", "node", "empty"} {
		require.Regexp(t, `(?m)^/r/\S+ +`+kind+` `, out)
	}
	require.Equal(t, r.ls(t, "/"), r.ls(t))
	require.Regexp(t, `(?m)^/r +directory +\d+ nodes below$`, r.ls(t))
	require.Regexp(t, `(?m)^/r/flight/key +flight key +run by`, r.ls(t, "-r"))
	var everything []tree.Object
	require.NoError(t, json.Unmarshal([]byte(r.ls(t, "-r", "--json", "/r")), &everything))
	require.Equal(t, "/r", everything[0].Path)
	require.Greater(t, len(everything), 15)
}

func TestWhatMayNotBeReadIsToldAsThatAndHidesNothingElse(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.session(t).Conn()
	mine := []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "me:" + hash}}
	for _, c := range []struct {
		path, data string
		acl        []zk.ACL
	}{
		{"/r", "", zk.WorldACL(zk.PermAll)}, {"/r/all", "x", mine}, {"/r/open", "x", zk.WorldACL(zk.PermAll)},
		{"/r/half", `{"permits":2}`, zk.WorldACL(zk.PermAll)}, {"/r/half/queue", "", mine},
	} {
		_, err := conn.Create(c.path, []byte(c.data), 0, c.acl)
		require.NoError(t, err)
	}
	for _, flag := range []string{"--json", "-l"} {
		p := run(t, "ls", "/r/all", flag, "--servers", s.addr)
		p.failed(exitFailure, "/r/all is not readable with these credentials: see --auth")
		require.Contains(t, p.stdout.String(), "/r/all", "shown all the same")
		run(t, "ls", "/r/half", flag, "--servers", s.addr).failed(exitFailure, "/r/half is not readable with these credentials: see --auth")
	}
	run(t, "ls", "/r/all", "--servers", s.addr, "--auth", "digest:me:secret").succeeded()
	out := s.ls(t, "-r", "/r")
	require.Regexp(t, `(?m)^/r/all +node +not readable with these credentials: see --auth$`, out)
	require.Regexp(t, `(?m)^/r/half +semaphore +not readable with these credentials: see --auth$`, out)
	require.Regexp(t, `(?m)^/r/open +node +1 byte`, out)
	require.Contains(t, s.ls(t, "/r/half", "--auth", "digest:me:secret"), "0 of 2 permits held")
}
