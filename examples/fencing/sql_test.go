//go:build unix

package fencing

import (
	"bytes"
	"database/sql"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// two leases of a lock, of which the second was granted after the first.
func two(t *testing.T) (first, second *zksync.Lease) {
	m := zksync.NewMutex(zktest.Run(t).Session(t), "/lock")
	var leases [2]*zksync.Lease
	for i := range leases {
		l, err := m.LockContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		leases[i] = l
	}
	return leases[0], leases[1]
}

// A holder that reads before it claims loses a write which comes between the two.
func TestALateWriteIsLostUnlessTheNextHolderClaimsFirst(t *testing.T) {
	first, second := two(t)
	for _, claims := range []bool{false, true} {
		db, _ := sqlite(t)
		row, ctx := Row{db, "tea"}, t.Context()
		n, err := row.Claim(ctx, first)
		require.NoError(t, err)
		require.Equal(t, 10, n)
		if claims {
			n, err = row.Claim(ctx, second)
		} else {
			err = db.QueryRow(`SELECT pieces FROM stock`).Scan(&n)
		}
		require.NoError(t, err)
		late := row.Write(ctx, first, 8)
		require.NoError(t, row.Write(ctx, second, n-1))
		require.NoError(t, db.QueryRow(`SELECT pieces FROM stock`).Scan(&n))
		require.Equal(t, 9, n)
		if claims {
			require.ErrorIs(t, late, zksync.ErrStale)
			_, err = row.Claim(ctx, first)
			require.ErrorIs(t, err, zksync.ErrStale, "a late claim")
		} else {
			require.NoError(t, late, "two pieces were taken that nobody counts")
		}
	}
}

// An UPDATE that has to wait for the claim of a later holder looks at the row again when that has committed.
func TestPostgresLooksAgainAfterItHasWaited(t *testing.T) {
	first, second := two(t)
	for level, wants := range map[sql.IsolationLevel]string{
		sql.LevelReadCommitted:  "stale token",
		sql.LevelRepeatableRead: "could not serialize access due to concurrent update",
	} {
		db, _ := database(t)
		late := make(chan error)
		require.NoError(t, Transaction(t.Context(), db, "tea", second, func(tx *sql.Tx) error {
			go func() { late <- writeIn(t, db, level, first) }()
			require.Eventually(t, func() (waits bool) {
				return db.QueryRow(`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)`).Scan(&waits) == nil && waits
			}, time.Minute, 10*time.Millisecond)
			_, err := tx.Exec(`UPDATE stock SET pieces = pieces - 1`)
			return err
		}))
		require.ErrorContains(t, <-late, wants)
		var pieces int
		require.NoError(t, db.QueryRow(`SELECT pieces FROM stock`).Scan(&pieces))
		require.Equal(t, 9, pieces)
	}
}

// writeIn runs the statement of Write in a transaction of a level.
func writeIn(t *testing.T, db *sql.DB, level sql.IsolationLevel, l *zksync.Lease) error {
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	result, err := tx.Exec(write, l.Token().String(), 8, "tea")
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n > 0 || err != nil {
		return err
	}
	return refused(l)
}

// Why the column has COLLATE "C": in Danish the two letters aa are one, which comes behind z.
func TestTokensDoNotSortInEveryLanguage(t *testing.T) {
	db, _ := database(t)
	older, newer := zksync.Token{Zxid: 0xaa}, zksync.Token{Zxid: 0xab}
	for collation, accepted := range map[string]bool{"da-x-icu": true, "C": false} {
		var late bool
		require.NoError(t, db.QueryRow(`SELECT $1 <= $2 COLLATE "`+collation+`"`, newer.String(), older.String()).Scan(&late))
		require.Equal(t, accepted, late, collation)
	}
}

func TestTheScriptIsRefusedAfterALaterHolder(t *testing.T) {
	first, second := two(t)
	db, _ := database(t)
	var name string
	require.NoError(t, db.QueryRow(`SELECT current_database()`).Scan(&name))
	p, err := cluster()
	require.NoError(t, err)
	run := func(l *zksync.Lease) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "stock.sh")
		cmd.Env = append(os.Environ(), "MENAGERIE_TOKEN="+l.Token().String(), "PGHOST="+p.dir, "PGUSER=postgres", "PGDATABASE="+name,
			"PATH="+p.bin+":"+os.Getenv("PATH"))
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		return said.String(), err
	}
	said, err := run(second)
	require.NoError(t, err, said)
	said, err = run(first)
	require.Error(t, err)
	require.Equal(t, "a later holder has claimed the tea\n", said)
	var pieces int
	require.NoError(t, db.QueryRow(`SELECT pieces FROM stock`).Scan(&pieces))
	require.Equal(t, 8, pieces)
}
