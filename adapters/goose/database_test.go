package zkgoose_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"
	"github.com/stretchr/testify/require"
)

// takes is how long a statement takes.
const takes = time.Second / 4

// shop is a database: a statement takes a while, and a transaction is applied with its commit. The real ones are
// in examples/fencing.
type shop struct {
	mu       sync.Mutex
	applied  []string // all statements but those of goose itself
	versions []int64
}

func (s *shop) apply(statements []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = append(s.applied, statements...)
}

// provider has two migrations, a and b.
func (s *shop) provider(t *testing.T, l lock.SessionLocker, more ...goose.ProviderOption) *goose.Provider {
	db := sql.OpenDB(s)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	files := fstest.MapFS{}
	for name, statement := range map[string]string{"1_a.sql": "a", "2_b.sql": "b"} {
		files[name] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + statement + ";\n")}
	}
	p, err := goose.NewProvider(database.DialectCustom, db, files, append(more, goose.WithStore(versions{s}), goose.WithSessionLocker(l))...)
	require.NoError(t, err)
	return p
}

// The driver.

func (s *shop) Connect(context.Context) (driver.Conn, error) { return &connection{shop: s}, nil }
func (s *shop) Driver() driver.Driver                        { return nil }

type connection struct {
	*shop
	inside  bool // a transaction
	pending []string
}

func (c *connection) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c *connection) Close() error                        { return nil }
func (c *connection) Begin() (driver.Tx, error)           { c.inside = true; return c, nil }
func (c *connection) Rollback() error                     { c.inside, c.pending = false, nil; return nil }

func (c *connection) Commit() error {
	c.apply(c.pending)
	return c.Rollback()
}

func (c *connection) ExecContext(ctx context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.pending = append(c.pending, strings.TrimRight(query, ";\n"))
	if !c.inside {
		return driver.ResultNoRows, c.Commit()
	}
	return driver.ResultNoRows, nil
}

// versions is the table of goose. It costs no time.
type versions struct{ *shop }

func (v versions) Tablename() string                                           { return "versions" }
func (v versions) CreateVersionTable(context.Context, database.DBTxConn) error { return nil }
func (v versions) Delete(context.Context, database.DBTxConn, int64) error {
	return errors.ErrUnsupported
}
func (v versions) GetLatestVersion(context.Context, database.DBTxConn) (int64, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Max(append([]int64{0}, v.versions...)), nil
}

func (v versions) Insert(_ context.Context, _ database.DBTxConn, r database.InsertRequest) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.versions = append(v.versions, r.Version)
	return nil
}

func (v versions) GetMigration(_ context.Context, _ database.DBTxConn, version int64) (*database.GetMigrationResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Contains(v.versions, version) {
		return nil, database.ErrVersionNotFound
	}
	return &database.GetMigrationResult{IsApplied: true}, nil
}

func (v versions) ListMigrations(context.Context, database.DBTxConn) (all []*database.ListMigrationsResult, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, version := range v.versions {
		all = append(all, &database.ListMigrationsResult{Version: version, IsApplied: true})
	}
	slices.Reverse(all)
	return all, nil
}
