package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
)

// patience is how long the whole of one test may take.
const patience = 4 * time.Minute

// lifetime is the timeout of every session, also in the foreign programs: no stall of a server ends one.
const lifetime = 30 * time.Second

// arena is one lock on a server, and the file that it guards.
type arena struct {
	t       *testing.T
	ctx     context.Context
	servers string
	path    string
	file    string
	running sync.WaitGroup
	writes  int
}

func newArena(t *testing.T, servers string) *arena {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	a := &arena{
		t: t, ctx: ctx, servers: servers, path: "/shared/lock",
		file: filepath.Join(t.TempDir(), "number"),
	}
	require.NoError(t, os.WriteFile(a.file, []byte("0 0\n"), 0o600))
	return a
}

// foreign starts a program that takes the lock so many times.
func (a *arena) foreign(name string, rounds int, writes bool, argv ...string) {
	a.t.Helper()
	cmd := exec.CommandContext(a.ctx, argv[0], argv[1:]...)
	a.start(name, rounds, writes, func() error {
		out, err := cmd.CombinedOutput()
		if err == nil && !strings.Contains(string(out), "done") {
			err = fmt.Errorf("it ended early")
		}
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
}

func (a *arena) start(name string, rounds int, writes bool, f func() error) {
	if writes {
		a.writes += rounds
	}
	a.running.Go(func() {
		if err := f(); err != nil {
			a.t.Errorf("%s: %v", name, err)
		}
	})
}

func (a *arena) curator(kind string, rounds int) {
	a.foreign("curator "+kind, rounds, kind != "read",
		"java", "-cp", "/usr/share/java/*", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"Contender.java", a.servers, a.path, kind, fmt.Sprint(rounds), a.file)
}

func (a *arena) kazoo(kind string, rounds int) {
	a.foreign("kazoo "+kind, rounds, kind != "read",
		"/usr/bin/python3", "contender.py", a.servers, a.path, kind, fmt.Sprint(rounds), a.file)
}

// ours takes the lock by a form of this module.
func (a *arena) ours(name string, rounds int, writes bool, form func(s *zksync.Session) func(context.Context, func() error) error) {
	s, err := zksync.Connect(a.ctx, a.servers, zksync.WithTimeout(lifetime))
	require.NoError(a.t, err)
	a.t.Cleanup(func() { require.NoError(a.t, s.Close()) })
	do := form(s)
	a.start(name, rounds, writes, func() error {
		for range rounds {
			if err := do(a.ctx, func() error { return a.inside(writes) }); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *arena) mutex(rounds int) {
	a.ours("our mutex", rounds, true, func(s *zksync.Session) func(context.Context, func() error) error {
		m := zksync.NewMutex(s, a.path)
		return func(ctx context.Context, f func() error) error {
			return m.Do(ctx, func(context.Context, *zksync.Lease) error { return f() })
		}
	})
}

func (a *arena) writer(rounds int) {
	a.ours("our writer", rounds, true, func(s *zksync.Session) func(context.Context, func() error) error {
		rw := zkrwmutex.New(s, a.path)
		return func(ctx context.Context, f func() error) error {
			return rw.Do(ctx, func(context.Context, *zksync.Lease) error { return f() })
		}
	})
}

func (a *arena) reader(rounds int) {
	a.ours("our reader", rounds, false, func(s *zksync.Session) func(context.Context, func() error) error {
		rw := zkrwmutex.New(s, a.path)
		return func(ctx context.Context, f func() error) error {
			return rw.RDo(ctx, func(context.Context, *zksync.Lease) error { return f() })
		}
	})
}

// downgrader writes, downgrades and goes on reading.
func (a *arena) downgrader(rounds int) {
	a.ours("our downgrader", rounds, true, func(s *zksync.Session) func(context.Context, func() error) error {
		rw := zkrwmutex.New(s, a.path)
		return func(ctx context.Context, f func() error) error {
			write, err := rw.LockContext(ctx)
			if err != nil {
				return err
			}
			if err := f(); err != nil {
				return err
			}
			read, err := rw.Downgrade(ctx, write)
			if err != nil {
				return err
			}
			defer read.Unlock()
			return a.inside(false)
		}
	})
}

// gozk takes the lock in go-zookeeper.
func (a *arena) gozk(rounds int) {
	conn, _, err := zk.Connect(strings.Split(a.servers, ","), lifetime, zk.WithLogInfo(false))
	require.NoError(a.t, err)
	a.t.Cleanup(conn.Close)
	a.start("go-zookeeper's Lock", rounds, true, func() error {
		for range rounds {
			l := zk.NewLock(conn, a.path, zk.WorldACL(zk.PermAll))
			if err := l.Lock(); err != nil {
				return err
			}
			if err := a.inside(true); err != nil {
				return err
			}
			if err := l.Unlock(); err != nil {
				return err
			}
		}
		return nil
	})
}

// check waits for everybody and looks if a write was lost.
func (a *arena) check() {
	a.t.Helper()
	a.running.Wait()
	n, m, err := a.numbers()
	require.NoError(a.t, err)
	require.Equal(a.t, [2]int{a.writes, a.writes}, [2]int{n, m}, "writes were lost: two were inside at once")
}

func (a *arena) numbers() (n, m int, err error) {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(string(text), &n, &m)
	return n, m, err
}

// inside is what is done under the lock.
func (a *arena) inside(writes bool) error {
	n, m, err := a.numbers()
	if err != nil {
		return err
	}
	if n != m {
		return fmt.Errorf("another writer was inside: %d %d", n, m)
	}
	if !writes {
		<-time.After(2 * time.Millisecond) // time for a writer that is inside, too, to write
		if again, m, err := a.numbers(); err != nil || again != n || m != n {
			return fmt.Errorf("a writer was inside while this one read: %d, then %d %d, %v", n, again, m, err)
		}
		return nil
	}
	if err := os.WriteFile(a.file, fmt.Appendf(nil, "%d %d\n", n, n+1), 0o600); err != nil {
		return err
	}
	<-time.After(time.Millisecond) // time for somebody else who is inside to see half of the change
	return os.WriteFile(a.file, fmt.Appendf(nil, "%d %d\n", n+1, n+1), 0o600)
}
