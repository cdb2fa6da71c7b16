package fencing

import (
	"context"
	"database/sql"
	"errors"

	"github.com/go-menagerie/menagerie/zksync"
)

// The schemas. An order of text that follows a language is wrong for tokens: in Danish aa comes behind z.
const (
	Postgres = `CREATE TABLE stock (item text PRIMARY KEY, pieces int NOT NULL,
		token text COLLATE "C" NOT NULL DEFAULT '')`
	SQLite = `CREATE TABLE stock (item text PRIMARY KEY, pieces int NOT NULL,
		token text NOT NULL DEFAULT '')`
)

// The statements. A token is 25 characters that sort as the grants do. The parameters are numbered as they appear: SQLite
// counts them so, whatever their numbers are.
const (
	claim = `UPDATE stock SET token = $1 WHERE item = $2 AND token <= $1 RETURNING pieces`
	write = `UPDATE stock SET token = $1, pieces = $2 WHERE item = $3 AND token <= $1`
)

// Row is a row of a table in PostgreSQL or SQLite. It must exist.
type Row struct {
	DB   *sql.DB
	Item string
}

// Claim implements Store.
func (r Row) Claim(ctx context.Context, l *zksync.Lease) (pieces int, err error) {
	err = r.DB.QueryRowContext(ctx, claim, l.Token().String(), r.Item).Scan(&pieces)
	if errors.Is(err, sql.ErrNoRows) {
		err = refused(l)
	}
	return pieces, err
}

// Write implements Store.
func (r Row) Write(ctx context.Context, l *zksync.Lease, pieces int) error {
	result, err := r.DB.ExecContext(ctx, write, l.Token().String(), pieces, r.Item)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n > 0 || err != nil {
		return err
	}
	return refused(l) // no row: its token is greater
}

// Transaction runs f in a transaction that begins with the claim. Until it ends no other holder can write, nor claim.
func Transaction(ctx context.Context, db *sql.DB, item string, l *zksync.Lease, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	var pieces int
	err = tx.QueryRowContext(ctx, claim, l.Token().String(), item).Scan(&pieces)
	if errors.Is(err, sql.ErrNoRows) {
		return refused(l)
	}
	if err == nil {
		err = f(tx)
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}
