//go:build unix

package fencing

import (
	"context"
	"database/sql"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	zkgoose "github.com/go-menagerie/menagerie/adapters/goose"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

var migrations = fstest.MapFS{
	"1_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id int);\nINSERT INTO orders VALUES (1);\n")},
	"2_second.sql": {Data: []byte("-- +goose NO TRANSACTION\n-- +goose Up\nINSERT INTO orders VALUES (2);\n")},
}

// Processes that start with the migrations of goose at the same time apply each once: docs/adapters.md.
func TestMigrationsOfManyProcessesAreAppliedOnce(t *testing.T) {
	for dialect, open := range map[goose.Dialect]func(*testing.T) (*sql.DB, string){goose.DialectPostgres: database, goose.DialectSQLite3: sqlite} {
		srv := zktest.Run(t)
		db, _ := open(t)
		var g errgroup.Group
		for range 4 {
			p, err := goose.NewProvider(dialect, db, migrations, goose.WithSessionLocker(zkgoose.New(srv.Session(t), "/migrations")))
			require.NoError(t, err)
			g.Go(func() error {
				_, err := p.Up(t.Context())
				return err
			})
		}
		require.NoError(t, g.Wait(), dialect)
		var n, sum int
		require.NoError(t, db.QueryRow(`SELECT count(*), sum(id) FROM orders`).Scan(&n, &sum))
		require.Equal(t, []int{2, 3}, []int{n, sum}, dialect)
	}
}

// The lock is lost during a transaction: Do rolls it back.
func TestDoRollsBackTheMigrationUnderWay(t *testing.T) {
	db, _ := database(t)
	srv := zktest.Run(t)
	s := srv.Session(t)
	p, err := goose.NewProvider(goose.DialectPostgres, db, nil, goose.WithGoMigrations(
		goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, `CREATE TABLE orders (id int)`); err != nil {
				return err
			}
			srv.Expire(s.ID())
			_, err := tx.ExecContext(ctx, `SELECT pg_sleep(60)`)
			return err
		}}, nil)))
	require.NoError(t, err)
	err = zksync.NewMutex(s, "/migrations").Do(t.Context(), func(ctx context.Context, _ *zksync.Lease) error {
		_, err := p.Up(ctx)
		return err
	})
	require.Error(t, err)
	var n int
	require.NoError(t, db.QueryRow(`SELECT count(*) FROM information_schema.tables WHERE table_name = 'orders'`).Scan(&n))
	require.Zero(t, n)
}
