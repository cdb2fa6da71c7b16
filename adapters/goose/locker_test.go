package zkgoose_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	zkgoose "github.com/go-menagerie/menagerie/adapters/goose"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAcceptance221OneOfManyProcessesMigrates(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		var db shop
		begin := time.Now()
		var g errgroup.Group
		for range 3 {
			p := db.provider(t, zkgoose.New(v.Session(), "/migrations"))
			g.Go(func() error {
				_, err := p.Up(t.Context())
				return err
			})
		}
		require.NoError(t, g.Wait())
		require.Equal(t, []string{"a", "b"}, db.applied)
		v.Took(begin, 2*takes, "two statements")
	})
}

// spy keeps the connection that goose locks.
type spy struct {
	*zkgoose.Locker
	conn *sql.Conn
}

func (l *spy) SessionLock(ctx context.Context, conn *sql.Conn) error {
	l.conn = conn
	return l.Locker.SessionLock(ctx, conn)
}

// The migration under way commits, as nothing can stop it, and no other one begins. It takes real time, because Close waits for a
// sync.Mutex of database/sql, which stops virtual time.
func TestAcceptance221AProcessThatIsCutOffBeginsNoOtherMigration(t *testing.T) {
	var db shop
	srv := zktest.Run(t)
	s := srv.Session(t)
	l := &spy{Locker: zkgoose.New(s, "/migrations")}
	cut := sync.OnceFunc(func() {
		srv.Expire(s.ID())
		conn := l.conn
		refused := make(chan error, 1000)
		for i, err := 0, error(nil); err != sql.ErrConnDone && i < cap(refused); i++ {
			go func() { refused <- conn.PingContext(t.Context()) }() // one that comes between two steps of Close waits for its end
			select {
			case err = <-refused:
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	migration := func(version int64, name string) *goose.Migration {
		return goose.NewGoMigration(version, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			cut()
			_, err := tx.ExecContext(ctx, name)
			return err
		}}, nil)
	}
	p := db.provider(t, l, goose.WithGoMigrations(migration(3, "c"), migration(4, "d")))
	_, err := p.Up(t.Context())
	require.ErrorIs(t, err, zksync.ErrLost)
	require.ErrorIs(t, err, sql.ErrConnDone)
	require.Equal(t, []string{"a", "b", "c"}, db.applied)

	_, err = p.Up(t.Context()) // it goes on, in a new session
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d"}, db.applied)
}

// docs/adapters.md: Do in place of a locker stops the transaction, too.
func TestDoStopsTheMigrationUnderWay(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var db shop
		s := v.Session()
		p := db.provider(t, zkgoose.New(s, "/unused"))
		time.AfterFunc(takes/2, func() { v.Server.Expire(s.ID()) })
		require.ErrorIs(t, migrateStrictly(t.Context(), s, p), context.Canceled)
		require.Empty(t, db.applied)
	})
}

func TestGooseWaitsForTheLockUntilItsContextEnds(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var db shop
		lease, err := zksync.NewMutex(v.Session(), "/migrations").LockContext(t.Context())
		require.NoError(t, err)
		l := zkgoose.New(v.Session(), "/migrations")
		p := db.provider(t, l)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = p.Up(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "held by")
		require.NoError(t, lease.Unlock())
		_, err = p.Up(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, l.SessionUnlock(t.Context(), nil), zksync.ErrMisuse)
		v.Server.Wait(t, "it is unlocked", func() bool { return len(v.Server.Children("/migrations")) == 0 })
	})
}
