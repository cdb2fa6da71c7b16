// Cache refill: ten processes need an entry of a cache, which is in SQLite. One computes it, the others wait and read it.
//
// The database refuses the write of a process that held the lock once and was overtaken: each row keeps the fencing token
// of the hold under which it was written, and a write with a smaller token changes nothing.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/go-menagerie/menagerie/examples/internal/cluster"
	"github.com/go-menagerie/menagerie/zksync"
)

const key = "exchange rates"

func main() { cluster.Main(conduct, need) }

func conduct(ctx context.Context, c *cluster.Cluster) error {
	dir, err := os.MkdirTemp("", "cacherefill")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "cache.db")
	os.Setenv("CACHE", file) // for the processes
	db, err := open(file)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `CREATE TABLE cache (key TEXT PRIMARY KEY, value TEXT, token TEXT)`); err != nil {
		return err
	}
	if err := c.All(ctx, cluster.Names("process", 10)...); err != nil {
		return err
	}
	// A token of a hold before that one, as a process has it that was paused in the middle of its refill.
	old := zksync.Token{Zxid: 1}
	wrote, err := store(ctx, db, "an old value", old)
	if err != nil {
		return err
	}
	c.Say("a late write with the older token %s was accepted: %t", old, wrote)
	if wrote {
		return errors.New("the fence does not hold")
	}
	return nil
}

func open(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)")
}

// need is what each process does: it needs the entry.
func need(ctx context.Context, s *zksync.Session, _ string) error {
	db, err := open(os.Getenv("CACHE"))
	if err != nil {
		return err
	}
	defer db.Close()
	if found, err := load(ctx, db); found || err != nil {
		return err
	}
	return zksync.NewMutex(s, "/refill").Do(ctx, func(ctx context.Context, l *zksync.Lease) error {
		if found, err := load(ctx, db); found || err != nil { // somebody was faster
			return err
		}
		fmt.Println("computes it, with token", l.Token())
		select {
		case <-time.After(time.Second):
		case <-ctx.Done(): // the lock was lost: another process computes it now
			return context.Cause(ctx)
		}
		_, err := store(ctx, db, "1 EUR = 1.08 USD", l.Token())
		return err
	})
}

func load(ctx context.Context, db *sql.DB) (found bool, err error) {
	var value string
	err = db.QueryRowContext(ctx, `SELECT value FROM cache WHERE key = ?`, key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		fmt.Println("has it:", value)
	}
	return err == nil, err
}

// store writes the entry, unless it was written under a later hold. The texts of tokens sort as the tokens do.
func store(ctx context.Context, db *sql.DB, value string, token zksync.Token) (wrote bool, err error) {
	r, err := db.ExecContext(ctx, `INSERT INTO cache VALUES (?1, ?2, ?3)
		ON CONFLICT (key) DO UPDATE SET value = ?2, token = ?3 WHERE token <= ?3`, key, value, token.String())
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}
