package zksync_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func open(ctx context.Context, servers string) (*zksync.Session, error) { // once for a process; "zk1:2181,zk2:2181,zk3:2181/app"
	return zksync.Connect(ctx, servers, zksync.WithLogger(slog.Default()))
}

func book(ctx context.Context, s *zksync.Session, db *sql.DB) error {
	return zksync.NewMutex(s, "/locks/books").Do(ctx, func(ctx context.Context, l *zksync.Lease) error { // ctx ends if the lock is lost
		const update = "UPDATE books SET total = total + $2, token = $1 WHERE id = 7 AND token <= $1"
		r, err := db.ExecContext(ctx, update, l.Token().String(), 100)
		if err != nil {
			return err
		}
		if n, _ := r.RowsAffected(); n == 0 {
			return zksync.ErrStale // a later holder has written: this process was paused
		}
		return nil
	})
}

// books is a database that understands the one statement of book.
type books struct {
	total int64
	token string
}

func (b *books) Connect(context.Context) (driver.Conn, error) { return b, nil }
func (b *books) Driver() driver.Driver                        { return nil }
func (b *books) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (b *books) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (b *books) Close() error                                 { return nil }

func (b *books) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	const known = "UPDATE books SET total = total + $2, token = $1 WHERE id = 7 AND token <= $1"
	if err := ctx.Err(); err != nil || statement != known {
		return nil, errors.Join(err, errors.New(statement))
	}
	token := args[0].Value.(string)
	if b.token > token {
		return driver.RowsAffected(0), nil
	}
	b.total, b.token = b.total+args[1].Value.(int64), token
	return driver.RowsAffected(1), nil
}

func TestTheReadmesBookingIsTheExample(t *testing.T) {
	readmeShows(t, "## In a program\n", "example_readme_test.go")
	s, err := open(t.Context(), zktest.Run(t).Addr())
	require.NoError(t, err)
	defer s.Close()
	b := &books{}
	db := sql.OpenDB(b)
	defer db.Close()
	require.NoError(t, book(t.Context(), s, db))
	require.NoError(t, book(t.Context(), s, db))
	require.EqualValues(t, 200, b.total)
	b.token = zksync.Token{Zxid: 1 << 62}.String() // written by a later holder
	require.ErrorIs(t, book(t.Context(), s, db), zksync.ErrStale)
	require.EqualValues(t, 200, b.total)
}

func TestTheReadmesFailoverIsTheTestBelow(t *testing.T) {
	readmeShows(t, "## zktest", "example_readme_test.go")
}

func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time is virtual
		srv := zktest.Run(t) // fails t if a session, ephemeral node or watch is left over
		old, next := srv.Session(t), srv.Session(t)
		lease, err := zksync.NewMutex(old, "/leader").LockContext(t.Context())
		require.NoError(t, err)
		heal := srv.Partition(old.ID()) // silence, as when a cable is pulled
		defer heal()
		_, err = zksync.NewMutex(next, "/leader").LockContext(t.Context()) // 15 s later
		require.NoError(t, err)
		require.False(t, lease.Valid())
	})
}

var timesOfATimeout = regexp.MustCompile(`(?m)^\| (\d+) s[^|]*\| ([\d.]+) s \| ([\d.]+) s \| (\d+) s \|`)

// The times that README and docs/operations.md give are measured here, with the servers' usual tick, at instants that differ in
// the last heartbeat and in the tick.
func TestTheTimesOfATimeout(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	rows := timesOfATimeout.FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, 4)
	for _, row := range rows {
		outlives, ended, blocks := seconds(t, row[2]), seconds(t, row[3]), seconds(t, row[4])
		timeout := zksync.WithTimeout(seconds(t, row[1]))
		freeFirst, freeLast, lostLast := time.Hour, time.Duration(0), time.Duration(0)
		for i := range time.Duration(10) {
			phase := time.Minute + i*470*time.Millisecond
			free := freeAfterAKill(t, phase, timeout)
			freeFirst, freeLast = min(freeFirst, free), max(freeLast, free)
			lostLast = max(lostLast, lostWithoutServers(t, phase, outlives, timeout))
		}
		t.Logf("%s s: free after %v to %v, lost after %v at the latest", row[1], freeFirst, freeLast, lostLast)
		require.LessOrEqual(t, freeLast, blocks)
		require.LessOrEqual(t, lostLast, ended)
		require.Greater(t, lostLast, ended-time.Second)
		if row[1] == "15" {
			require.Greater(t, freeFirst, 14*time.Second)
			for _, text := range []string{"14 to 17 s", row[2] + " s", row[3] + " s"} {
				require.True(t, strings.Contains(readme(t), text), "README does not say %q", text)
			}
		}
	}
}

func seconds(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text + "s")
	require.NoError(t, err)
	return d
}

// freeAfterAKill is how long a waiter waits for a lock whose holder falls silent.
func freeAfterAKill(t *testing.T, phase time.Duration, timeout zksync.SessionOption) (free time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithTick(2*time.Second))
		dead, next := srv.Session(t, timeout), srv.Session(t, timeout)
		_, err := zksync.NewMutex(dead, "/l").LockContext(t.Context())
		require.NoError(t, err)
		granted := make(chan error)
		go func() {
			_, err := zksync.NewMutex(next, "/l").LockContext(t.Context())
			granted <- err
		}()
		time.Sleep(phase)
		begun, heal := time.Now(), srv.Partition(dead.ID())
		require.NoError(t, <-granted)
		free = time.Since(begun)
		heal()
	})
	return free
}

// lostWithoutServers is how long a holder keeps its lease when no server answers any more. It checks that the lease outlives an
// outage first.
func lostWithoutServers(t *testing.T, phase, outlives time.Duration, timeout zksync.SessionOption) (lost time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t, zktest.WithTick(2*time.Second))
		l, err := zksync.NewMutex(srv.Session(t, timeout), "/l").LockContext(t.Context())
		require.NoError(t, err)
		time.Sleep(phase)
		thaw := srv.Freeze()
		time.Sleep(outlives)
		thaw()
		time.Sleep(phase)
		require.NoError(t, l.Err(), "lost in an outage of %v", outlives)
		begun := time.Now()
		thaw = srv.Freeze()
		<-l.Done()
		lost = time.Since(begun)
		thaw()
	})
	return lost
}
