package zkgoose_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	zkgoose "github.com/go-menagerie/menagerie/adapters/goose"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// migrate is what each process does when it starts.
func migrate(ctx context.Context, s *zksync.Session, dialect goose.Dialect, db *sql.DB, files fs.FS, opts ...goose.ProviderOption) error {
	locker := zkgoose.New(s, "/migrations/shop")
	p, err := goose.NewProvider(dialect, db, files, append(opts, goose.WithSessionLocker(locker))...)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx) // waits for its turn, and finds the work done, or does it
	return err
}

// migrateStrictly has no locker: the migration under way ends with the lock.
func migrateStrictly(ctx context.Context, s *zksync.Session, p *goose.Provider) error {
	return zksync.NewMutex(s, "/migrations/shop").Do(ctx, func(ctx context.Context, _ *zksync.Lease) error {
		_, err := p.Up(ctx)
		return err
	})
}

func Example() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := zksync.Connect(ctx, srv.Addr())
	if err != nil {
		panic(err)
	}
	defer s.Close()
	database := &shop{} // in place of a driver
	db := sql.OpenDB(database)
	defer db.Close()
	files := fstest.MapFS{"1_stock.sql": {Data: []byte("-- +goose Up\nCREATE TABLE stock (pieces int);\n")}}
	for range 2 {
		if err := migrate(ctx, s, goose.DialectCustom, db, files, goose.WithStore(versions{database})); err != nil {
			panic(err)
		}
		fmt.Println(database.applied)
	}
	// Output:
	// [CREATE TABLE stock (pieces int)]
	// [CREATE TABLE stock (pieces int)]
}
