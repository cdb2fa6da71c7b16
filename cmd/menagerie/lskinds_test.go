//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"
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
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// session is one of this process, whose recipes ls is shown.
func (s *server) session(t *testing.T) *zksync.Session {
	t.Helper()
	z, err := zksync.Connect(t.Context(), s.addr, zksync.WithName("test"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = z.Close() })
	return z
}

// ls returns what that prints.
func (s *server) ls(t *testing.T, args ...string) string {
	t.Helper()
	p := run(t, append([]string{"ls", "--servers", s.addr}, args...)...)
	p.succeeded()
	return p.stdout.String()
}

// says waits until ls prints all of texts of path.
func (s *server) says(t *testing.T, path string, texts ...string) {
	t.Helper()
	var out string
	require.Eventually(t, func() bool {
		out = s.ls(t, path)
		for _, text := range texts {
			if !strings.Contains(out, text) {
				return false
			}
		}
		return true
	}, patience, pause, "want %q of %s", texts, path)
}

// listed is what ls --json says of path in its directory.
func (s *server) listed(t *testing.T, dir, path string) object {
	t.Helper()
	var all []object
	require.NoError(t, json.Unmarshal([]byte(s.ls(t, "--json", dir)), &all))
	for _, o := range all {
		if o.Path == path {
			return o
		}
	}
	require.Fail(t, "not listed", "%s in %v", path, all)
	return object{}
}

// in runs f in the background until the test ends.
func background(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestEveryKindOfRecipeIsToldByItsNodes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	z := s.session(t)
	all, ctx := t, t.Context() // what the subtests set up stays for the last
	host, err := os.Hostname()
	require.NoError(t, err)
	keep := func(l *zksync.Lease, err error) { t.Helper(); require.NoError(t, err) }
	do := func(err error) { t.Helper(); require.NoError(t, err) }

	t.Run("lock", func(t *testing.T) {
		keep(zksync.NewMutex(z, "/r/lock").LockContext(ctx))
		s.says(t, "/r/lock", "lock", "held", "test@"+host)
		// It may be the lock of a once.
		s.says(t, "/r", "/r: once, run by "+host, "or a directory", "/r/lock  lock  held by "+host)
		o := s.listed(t, "/r", "/r/lock")
		require.Equal(t, []string{"lock", "held"}, []string{o.Kind, o.State})
		require.Contains(t, o.Detail, "held by "+host+" pid ")
		require.Len(t, o.Entries, 1)
	})
	t.Run("rwlock", func(t *testing.T) {
		rw := zkrwmutex.New(z, "/r/rw")
		keep(rw.RLockContext(ctx))
		background(all, func(ctx context.Context) { _, _ = rw.LockContext(ctx) })
		s.says(t, "/r/rw", "read   held", "write  waiting")
		require.Contains(t, s.listed(t, "/r", "/r/rw").Detail, "held for reading by "+host)
		require.Equal(t, "rwlock", s.listed(t, "/r", "/r/rw").Kind)
	})
	t.Run("semaphore", func(t *testing.T) {
		w := zksemaphore.NewWeighted(z, "/r/sem", 8)
		keep(w.AcquireLease(ctx, 3))
		keep(w.AcquireLease(ctx, 2))
		background(all, func(ctx context.Context) { _, _ = w.AcquireLease(ctx, 7) })
		s.says(t, "/r/sem", "semaphore, 5 of 8 permits held", "and 1 other; 1 waits", "PERMITS", "permit  waiting  7")
		do(w.Resize(ctx, 9))
		o := s.listed(t, "/r", "/r/sem")
		require.Equal(t, []int64{5, 9}, []int64{*o.Count, *o.Total})
		require.EqualValues(t, 3, o.Entries[0].Permits)
		require.EqualValues(t, 3, contenders(t, s.addr, "/r/sem")[0].Permits)
	})
	t.Run("election", func(t *testing.T) {
		keep(zkelection.New(z, "/r/elect", zkelection.Candidate{ID: "web-3:8080"}).Campaign(ctx))
		background(all, func(ctx context.Context) {
			_, _ = zkelection.New(z, "/r/elect", zkelection.Candidate{ID: "web-4:8080"}).Campaign(ctx)
		})
		s.says(t, "/r/elect", "election, led by web-3:8080", "web-4:8080")
		require.Equal(t, "web-4:8080", contenders(t, s.addr, "/r/elect")[1].ID)
	})
	t.Run("once", func(t *testing.T) {
		running := zkonce.New(z, "/r/running")
		background(all, func(ctx context.Context) {
			_, _ = running.DoContext(ctx, func(ctx context.Context) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
		})
		s.says(t, "/r/running", "once, run by "+host, "or a directory")
		run(t, "once", "/r/done", "--servers", s.addr, "--", "true").succeeded()
		s.says(t, "/r/done", "once, done by true on "+host)
		require.Equal(t, "done", s.listed(t, "/r", "/r/done").State)
	})
	t.Run("barrier", func(t *testing.T) {
		b := zkbarrier.NewBarrier(z, "/r/barrier", 3)
		background(all, func(ctx context.Context) { _, _ = b.Await(ctx) })
		s.says(t, "/r/barrier", "barrier, 1 of 3 have arrived", "party  waiting  test@"+host)
	})
	t.Run("double barrier", func(t *testing.T) {
		b := zkbarrier.NewDoubleBarrier(z, "/r/double", 2)
		background(all, func(ctx context.Context) { _ = b.Enter(ctx) })
		s.says(t, "/r/double", "double barrier, 1 of 2 have arrived")
		do(zkbarrier.NewDoubleBarrier(z, "/r/double", 2).Enter(ctx))
		s.says(t, "/r/double", "double barrier, open: 2 of 2 have not left")
	})
	t.Run("latch", func(t *testing.T) {
		l := zklatch.New(z, "/r/latch", 2)
		do(l.CountDown(ctx))
		s.says(t, "/r/latch", "latch, closed: 1 of 2 events counted down")
		do(l.CountDown(ctx))
		s.says(t, "/r/latch", "latch, open: all of 2 events counted down")
	})
	t.Run("gate", func(t *testing.T) {
		g := zklatch.NewGate(z, "/r/gate")
		do(g.Close(ctx))
		s.says(t, "/r/gate", "gate, closed by "+host)
		_, err := z.Conn().Create("/r/gate/closed/01234567-89ab-8def-8123-456789abcdef", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		do(err) // somebody who lifts it does that first
		s.says(t, "/r/gate", "gate, closed by "+host)
		do(g.Open(ctx))
		s.says(t, "/r/gate", "open gate, or anything else")
	})
	t.Run("phaser", func(t *testing.T) {
		p := zkphaser.New(z, "/r/phaser")
		_, err := p.BulkRegister(ctx, 2)
		do(err)
		_, err = p.Arrive(ctx)
		do(err)
		s.says(t, "/r/phaser", "phaser, phase 0: 1 of 2 have arrived")
	})
	t.Run("wait group", func(t *testing.T) {
		g := zkwaitgroup.New(z, "/r/group")
		do(g.AddContext(ctx, 3))
		s.says(t, "/r/group", "wait group, 3 members not done", "living")
	})
	t.Run("condition", func(t *testing.T) {
		m := zksync.NewMutex(z, "/r/monitor")
		l, err := m.LockContext(ctx)
		do(err)
		background(all, func(ctx context.Context) { _, _ = zkcond.New(m, "/r/cond").WaitContext(ctx, l) })
		s.says(t, "/r/cond", "condition, 1 waits, 0 signals not used up")
	})
	t.Run("flight", func(t *testing.T) {
		f := zkflight.New[string](z, "/r/flight")
		background(all, func(ctx context.Context) {
			_, _, _ = f.Do(ctx, "key", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
		})
		s.says(t, "/r/flight", "flight", "/r/flight/key", "run by "+host)
		s.says(t, "/r/flight/key", "flight key, run by "+host)
	})
	t.Run("plain nodes", func(t *testing.T) {
		_, err := z.Conn().Create("/r/plain", []byte("hello"), 0, zk.WorldACL(zk.PermAll))
		do(err)
		_, err = z.Conn().Create("/r/mine", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		do(err)
		s.says(t, "/r/plain", "node, 5 bytes of data, nothing below")
		s.says(t, "/r/mine", "node, 0 bytes, of session 0x")
	})
	t.Run("the directory", func(t *testing.T) {
		out := s.ls(t, "/r")
		for _, kind := range []string{"lock", "rwlock", "semaphore", "election", "once", "barrier", "double barrier", "latch", "phaser", "wait group", "condition", "flight", "node", "empty"} {
			require.Regexp(t, `(?m)^/r/\S+ +`+kind+` `, out)
		}
		require.Equal(t, s.ls(t, "/"), s.ls(t))
		require.Regexp(t, `(?m)^/r +directory +\d+ nodes below$`, s.ls(t))
		require.Regexp(t, `(?m)^/r/flight/key +flight key +run by`, s.ls(t, "-r"))
		var everything []object
		require.NoError(t, json.Unmarshal([]byte(s.ls(t, "-r", "--json", "/r")), &everything))
		require.Equal(t, "/r", everything[0].Path)
		require.Greater(t, len(everything), 15)
	})
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
	out := s.ls(t, "-r", "/r")
	require.Regexp(t, `(?m)^/r/all +node +may not be read by us: see --auth$`, out)
	require.Regexp(t, `(?m)^/r/half +semaphore +may not be read by us: see --auth$`, out)
	require.Regexp(t, `(?m)^/r/open +node +1 byte`, out)
	require.Contains(t, s.ls(t, "/r/half", "--auth", "digest:me:secret"), "0 of 2 permits held")
}

func TestNoLineIsTooWideUnlessItIsToBeLong(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	z := s.session(t)
	deep := "/" + strings.Repeat("directory/", 12) + "lock"
	_, err := zksync.NewMutex(z, deep, zksync.WithName(strings.Repeat("n", 60))).LockContext(t.Context())
	require.NoError(t, err)
	_, err = zkelection.New(z, "/e", zkelection.Candidate{ID: strings.Repeat("i", 90)}).Campaign(t.Context())
	require.NoError(t, err)
	_, err = zksemaphore.NewWeighted(z, "/sem", 1<<40).AcquireLease(t.Context(), 1<<40)
	require.NoError(t, err)
	for _, args := range [][]string{{deep}, {"/e"}, {"/sem"}, {"-r"}, {}} {
		for line := range strings.Lines(s.ls(t, args...)) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), maxColumns, line)
		}
	}
	require.Contains(t, s.ls(t, "-l", deep), strings.Repeat("n", 60))
	require.Contains(t, s.ls(t, "-l", deep), deep+"/_c_")
	require.Contains(t, s.ls(t, "-l", "-r"), deep+": lock, held by")
}

// One long cell must not make the others useless.
func TestALongPathLeavesRoomForTheStateAndALongIDForTheOwner(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	state := "held by web-3 pid 4711 for 12s"
	writeView(&w, &view{target: &object{Path: "/", Kind: "directory", State: "directory"}, below: []*object{
		{Path: "/short", Kind: "lock", Detail: state},
		{Path: "/" + strings.Repeat("directory/", 12) + "the-lock", Kind: "lock", Detail: state},
		{Path: "/long", Kind: "lock", Detail: state + strings.Repeat(" and so on", 9)},
	}}, lsOptions{}, time.Now())
	lines := strings.Split(w.String(), "\n")
	require.Regexp(t, `^/short +lock  `+state+`$`, lines[1])
	require.Regexp(t, `^/directory/.*\.\.\..*/directory/the-lock  lock  `+state+`$`, lines[2])
	require.Equal(t, 40, strings.Index(lines[2], "  lock"), "no shorter than that")
	require.Len(t, lines[3], maxColumns)

	w.Reset()
	writeEntries(&w, &object{Entries: []contenderRow{{Kind: "lock", State: "held", ID: strings.Repeat("i", 90), Owner: ownerRow{"web-3", 4711, "invoices"}}}}, false, time.Now())
	require.Contains(t, w.String(), "iii...  invoices@web-3:4711  ")
}

func TestWatchPrintsAgainWhatHasChanged(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	z := s.session(t)
	l, err := zksync.NewMutex(z, "/w/a").LockContext(t.Context())
	require.NoError(t, err)
	p := start(t, "ls", "/w/a", "--watch", "--servers", s.addr)
	p.prints("held")
	background(t, func(ctx context.Context) { _, _ = zksync.NewMutex(z, "/w/a").LockContext(ctx) })
	p.prints("waiting")
	for _, c := range s.Sessions() {
		s.Disconnect(c.ID)
	}
	frames := strings.Count(p.stdout.String(), "POS")
	require.NoError(t, l.Unlock())
	require.Eventually(t, func() bool { return strings.Count(p.stdout.String(), "POS") > frames }, patience, pause)
	p.signal(syscall.SIGINT)
	require.Equal(t, 130, p.wait(), p.stderr.String())

	j := start(t, "ls", "/w", "--watch", "--json", "--servers", s.addr)
	j.prints(`"path":"/w/a"`)
	_, err = zksync.NewMutex(z, "/w/b").LockContext(t.Context())
	require.NoError(t, err)
	j.prints(`"path":"/w/b"`)
	for line := range strings.Lines(j.stdout.String()) {
		require.True(t, json.Valid([]byte(line)), line)
	}
	j.signal(syscall.SIGTERM)
	require.Equal(t, 143, j.wait())

	run(t, "ls", "/nothing", "--watch", "--servers", s.addr).failed(exitNoSuchPath, "/nothing does not exist")
}

// In virtual time: nobody looks while nothing happens, and then not more often than every pause.
func TestNobodyLooksAgainBeforeSomethingHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		z := srv.Session(t)
		_, err := z.Conn().Create("/a", nil, 0, zk.WorldACL(zk.PermAll)) // or the server would remove it when it is empty
		require.NoError(t, err)
		m := zksync.NewMutex(z, "/a")
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		watcher := srv.Session(t)
		ctx, cancel := context.WithCancel(t.Context())
		looks := make(chan string, 100)
		done := make(chan error, 1)
		go func() {
			done <- follow(ctx, watcher, time.Second, true, func(ctx context.Context, l *look) error {
				o, err := l.object(ctx, "/a")
				if err == nil {
					looks <- o.State
				}
				return err
			})
		}()
		next := func() string {
			select {
			case state := <-looks:
				return state
			case <-time.After(time.Hour):
				return "no look"
			}
		}
		require.Equal(t, "held", next())
		time.Sleep(time.Hour)
		require.Empty(t, looks)
		changed := time.Now()
		require.NoError(t, l.Unlock())
		require.Equal(t, "empty", next())
		require.Equal(t, time.Second, time.Since(changed))
		srv.Disconnect(watcher.ID())
		require.Equal(t, "empty", next(), "something may have happened meanwhile")
		srv.Expire(watcher.ID())
		require.Equal(t, "empty", next(), "in the next session")
		_, err = m.LockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, "held", next())
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	})
}

func TestWatchToldOfAPathThatGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	conn := s.session(t).Conn()
	make := func(path string) {
		t.Helper()
		_, err := conn.Create(path, []byte("x"), 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	make("/d")
	make("/d/e")
	p := start(t, "ls", "/d/e", "--watch", "--servers", s.addr)
	p.prints("1 byte of data")
	require.NoError(t, conn.Delete("/d/e", -1))
	p.prints("/d/e does not exist")
	require.NoError(t, conn.Delete("/d", -1))
	make("/d")
	make("/d/e")
	require.Eventually(t, func() bool { return strings.Count(p.stdout.String(), "1 byte of data") == 2 }, patience, pause, p.stdout.String())
}
