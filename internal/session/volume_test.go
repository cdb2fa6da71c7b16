package session_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// entry is a line of a log.
type entry struct {
	at    time.Time
	level slog.Level
	msg   string
	says  map[string]string
}

// book is a handler that keeps what is logged.
type book struct {
	mu    sync.Mutex
	lines []entry
}

func (*book) Enabled(context.Context, slog.Level) bool { return true }
func (b *book) WithAttrs([]slog.Attr) slog.Handler     { panic("every line has its own keys") }
func (b *book) WithGroup(string) slog.Handler          { panic("every line has its own keys") }

func (b *book) Handle(_ context.Context, r slog.Record) error {
	e := entry{r.Time, r.Level, r.Message, make(map[string]string)}
	r.Attrs(func(a slog.Attr) bool {
		e.says[a.Key] = a.Value.String()
		return true
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, e)
	return nil
}

func (b *book) option() zksync.SessionOption { return zksync.WithLogger(slog.New(b)) }

// take returns the lines since the last call.
func (b *book) take() []entry {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	return lines
}

// loud returns those of the lines that are above the debug level.
func loud(lines []entry) (some []entry) {
	for _, l := range lines {
		if l.level > slog.LevelDebug {
			some = append(some, l)
		}
	}
	return some
}

// counts is how many lines there are of each level and message.
func counts(lines []entry) map[string]int {
	n := make(map[string]int)
	for _, l := range lines {
		n[fmt.Sprint(l.level, " ", l.msg)]++
	}
	return n
}

func hex(id int64) string { return fmt.Sprintf("0x%x", id) }

func locked(t *testing.T, s *zksync.Session, path string) *zksync.Lease {
	t.Helper()
	l, err := zksync.NewMutex(s, path).LockContext(t.Context())
	require.NoError(t, err)
	return l
}

// All that is logged of an hour in which no server runs.
func TestAnHourWithoutServersIsTwoLinesForEachSessionAndOneForEachLease(t *testing.T) {
	for _, c := range []struct{ sessions, leases int }{{1, 100}, {3, 1}} {
		t.Run(fmt.Sprintf("%d sessions with %d leases", c.sessions, c.leases), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithTick(time.Second))
				books, before := make([]book, c.sessions), make([]int64, c.sessions)
				all := make([]*zksync.Session, c.sessions)
				locked(t, srv.Session(t), "/locks/other") // which each session waits for
				for i := range all {
					all[i] = srv.Session(t, zksync.WithTimeout(10*time.Second), books[i].option())
					before[i] = all[i].ID()
					for n := range c.leases {
						locked(t, all[i], fmt.Sprintf("/locks/%d/%d", i, n))
					}
					go func() {
						if l, err := zksync.NewMutex(all[i], "/locks/other").LockContext(t.Context()); err == nil {
							_ = l.Unlock()
						}
					}()
				}
				time.Sleep(time.Minute)
				for i := range books {
					require.Equal(t, map[string]int{"DEBUG connected": 1}, counts(books[i].take()))
				}
				srv.Stop()
				down := time.Now()
				time.Sleep(time.Hour)
				srv.Restart()
				time.Sleep(time.Minute)
				for i := range books {
					lines := books[i].take()
					require.Equal(t, map[string]int{
						"DEBUG disconnected":                    1,
						"DEBUG cannot connect":                  10_803, // at most three a second
						"DEBUG session lost":                    1,
						"DEBUG queueing again":                  1,
						"DEBUG ended a session of the past":     1,
						"WARN connection lost":                  1,
						"WARN lease lost":                       c.leases,
						"INFO connected again in a new session": 1,
					}, counts(lines))
					said := loud(lines)
					first, last := said[0], said[len(said)-1]
					require.Equal(t, "connection lost", first.msg)
					require.Equal(t, down.Add(time.Second), first.at)
					require.Equal(t, hex(before[i]), first.says["session"])
					require.Contains(t, first.says["error"], "; the last attempt failed: zktest:2181: connection refused: no server listens there")
					require.Equal(t, "connected again in a new session", last.msg)
					require.Equal(t, hex(all[i].ID()), last.says["session"])
					require.Contains(t, last.says["error"], "session "+hex(before[i])+" was lost: no server answered for ")
					require.Contains(t, last.says["after"], "1h0m0")
					paths := make(map[string]bool)
					for _, l := range said[1 : len(said)-1] {
						paths[l.says["path"]] = true
						require.Equal(t, "session", l.says["reason"])
						require.Equal(t, hex(before[i]), l.says["session"])
						require.Contains(t, l.says["error"], "no server answered for ")
					}
					require.Len(t, paths, c.leases)
				}
			})
		})
	}
}

func TestAQuietDayIsOneLineAtDebug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithVirtualLimit(25*time.Hour), zktest.WithTick(5*time.Minute))
		var b book
		s := srv.Session(t, zksync.WithTimeout(30*time.Minute), b.option())
		other := srv.Session(t, zksync.WithTimeout(30*time.Minute))
		locked(t, s, "/held")
		for range 24 {
			l := locked(t, other, "/locks/a")
			next := make(chan *zksync.Lease)
			go func() { next <- locked(t, s, "/locks/a") }()
			time.Sleep(time.Hour)
			require.NoError(t, l.Unlock())
			require.NoError(t, (<-next).Unlock())
		}
		require.Equal(t, map[string]int{"DEBUG connected": 1}, counts(b.take()))
	})
}

// Each warning has its end, and no two of a kind come within a minute. The last outage begins soon after such a pair: it is
// a warning as soon as one may come.
func TestAConnectionThatFlapsIsAWarningAMinuteAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var b book
		s := srv.Session(t, zksync.WithTimeout(10*time.Second), b.option())
		down := func() (allow func()) {
			allow = srv.Refuse()
			srv.Disconnect(s.ID())
			return allow
		}
		for range 720 {
			allow := down()
			time.Sleep(2 * time.Second)
			allow()
			time.Sleep(3 * time.Second)
		}
		lines := b.take()
		all := counts(lines)
		require.Equal(t, 720, all["DEBUG disconnected"])
		require.Equal(t, 720, all["DEBUG connected"]+all["INFO connected again"]-1, "each connection once")
		said := loud(lines)
		require.LessOrEqual(t, len(said), 2*60)
		require.Greater(t, len(said), 2*50)
		var newest time.Time
		for i, l := range said {
			if i%2 == 1 {
				require.Equal(t, "connected again", l.msg)
				newest = l.at
				continue
			}
			require.Equal(t, "connection lost", l.msg)
			require.GreaterOrEqual(t, l.at.Sub(newest), time.Minute)
		}
		defer down()()
		time.Sleep(time.Hour)
		last := loud(b.take())
		require.Equal(t, "connection lost", last[0].msg)
		require.Equal(t, newest.Add(time.Minute), last[0].at)
	})
}

// It was not connected for a moment only, so this is no outage. The second time comes too soon after the first.
func TestASessionThatTheServersExpireIsOneLineWithBothIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var b book
		s := srv.Session(t, zksync.WithTimeout(10*time.Second), b.option())
		first := s.ID()
		srv.Expire(first)
		time.Sleep(10 * time.Second)
		second := s.ID()
		said := loud(b.take())
		require.Len(t, said, 1)
		const msg = "connected again in a new session"
		replaced := func(now, lost int64) map[string]string {
			return map[string]string{"server": "zktest:2181", "session": hex(now), "after": said[0].says["after"],
				"error": fmt.Sprintf("session %s was lost: zktest:2181 says that the session has expired", hex(lost))}
		}
		require.Equal(t, entry{said[0].at, slog.LevelInfo, msg, replaced(second, first)}, said[0])
		require.Regexp(t, `^\d+ms$|^0s$`, said[0].says["after"])
		at := said[0].at
		srv.Expire(second)
		time.Sleep(10 * time.Second)
		require.Empty(t, loud(b.take()))
		time.Sleep(time.Until(at.Add(2 * time.Minute)))
		said = loud(b.take())
		require.Len(t, said, 1)
		require.Equal(t, entry{at.Add(time.Minute), slog.LevelInfo, msg, replaced(s.ID(), second)}, said[0])
	})
}

// What ends a session for good, or the process itself, is not followed by a warning that there is no connection.
func TestAnOutageThatCloseEndsIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithLeftovers())
		var b book
		s := srv.Session(t, b.option())
		srv.Stop()
		time.Sleep(time.Second / 2)
		require.NoError(t, s.Close())
		time.Sleep(time.Minute)
		require.Empty(t, loud(b.take()))
	})
}

// A caller of Connect should know at once, and then that it was worth the wait.
func TestAFirstConnectionThatTakesLongIsAWarningAtOnceAndALineWhenItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var b book
		allow := srv.Refuse()
		began := time.Now()
		time.AfterFunc(time.Hour, allow)
		s, err := zksync.Connect(t.Context(), "zk1", zksync.WithTimeout(10*time.Second), zksync.WithDialer(srv.DialContext), b.option())
		require.NoError(t, err)
		defer s.Close()
		lines := b.take()
		require.Equal(t, map[string]int{"WARN cannot connect": 1, "DEBUG cannot connect": 10_803, "INFO connected": 1}, counts(lines))
		said := loud(lines)
		require.Equal(t, entry{began, slog.LevelWarn, "cannot connect", map[string]string{"server": "zk1:2181",
			"error": "connection refused: no server listens there"}}, said[0])
		require.Equal(t, map[string]string{"server": "zk1:2181", "session": hex(s.ID()), "after": "1h0m0.3s"}, said[1].says)
	})
}

// The handler of the warning takes so long that the connection is back meanwhile.
func TestTheLinesOfAnOutageComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		b := &slow{}
		s := srv.Session(t, zksync.WithLogger(slog.New(b)))
		srv.Stop()
		time.Sleep(2 * time.Second)
		srv.Restart()
		m := zksync.NewMutex(s, "/locks/a")
		began := time.Now()
		_, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.Less(t, time.Since(began), time.Second, "a slow logger holds up nothing else")
		require.Empty(t, loud(b.take()))
		time.Sleep(time.Minute)
		said := loud(b.take())
		require.Len(t, said, 2)
		require.Equal(t, "connection lost", said[0].msg)
		require.Equal(t, "connected again", said[1].msg)
	})
}

// slow is a book whose warnings take half a minute.
type slow struct{ book }

func (s *slow) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		time.Sleep(30 * time.Second)
	}
	return s.book.Handle(ctx, r)
}

// A throttled server is one cause, whatever the path; a node that may not be removed is another.
func TestServersThatRefuseAreAWarningAMinuteAtMost(t *testing.T) {
	for name, c := range map[string]struct {
		code  zktest.Code
		op    zktest.Op
		msg   string
		error string
	}{
		"throttled":   {zktest.CodeThrottled, zktest.Create, "the servers refuse a request, trying again", "throttled"},
		"not allowed": {zktest.CodeNoAuth, zktest.Delete, "cannot remove an abandoned node, trying again", "zk: not authenticated"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithTick(time.Second), zktest.WithLeftovers())
				var b book
				s := srv.Session(t, b.option())
				clear := srv.SetError(c.code, c.op)
				wait := func(path string) {
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
					defer cancel()
					if l, err := zksync.NewMutex(s, path).LockContext(ctx); err == nil {
						_ = l.Unlock()
					}
				}
				for i := range 5 {
					go wait(fmt.Sprint("/locks/", i))
				}
				time.Sleep(9 * time.Minute)
				said := loud(b.take())
				require.Len(t, said, 1, "five that wait for ten minutes")
				require.Equal(t, c.msg, said[0].msg)
				require.Equal(t, c.error, said[0].says["error"])
				require.Regexp(t, `^/locks(/\d)?$`, said[0].says["path"])
				time.Sleep(2 * time.Minute)
				for i := range 20 { // another one each half minute
					go wait(fmt.Sprint("/locks/1", i))
					time.Sleep(30 * time.Second)
				}
				require.Len(t, loud(b.take()), 10)
				clear()
				time.Sleep(10 * time.Minute)
				require.Empty(t, loud(b.take()))
			})
		})
	}
}
