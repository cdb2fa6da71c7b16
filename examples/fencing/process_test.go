//go:build unix

package fencing

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// TestMain is also the main function of the processes that the tests stop.
func TestMain(m *testing.M) {
	if kind := os.Getenv("FENCING_KIND"); kind != "" {
		if err := holder(kind, os.Getenv("FENCING_AT"), os.Getenv("FENCING_SERVERS")); err != nil {
			fmt.Println("error:", err)
		}
		return
	}
	code := m.Run()
	if p := running.Load(); p != nil {
		p.stop()
	}
	os.Exit(code)
}

// holder holds the lock, and takes two pieces. Before the write it says so and waits for a line of its standard input.
func holder(kind, at, servers string) error {
	ctx := context.Background()
	s, err := zksync.Connect(ctx, servers, zksync.WithTimeout(short))
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := zksync.NewMutex(s, "/lock").LockContext(ctx)
	if err != nil {
		return err
	}
	ready := func() {
		fmt.Println("ready", l.Valid())
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	if strings.HasSuffix(kind, "transaction") {
		err = take(ctx, kind, at, l, ready)
	} else {
		var pieces int
		store := open(kind, at, s)
		if pieces, err = store.Claim(ctx, l); err == nil {
			ready()
			err = store.Write(ctx, l, pieces-2)
		}
	}
	if err == nil {
		fmt.Println("written")
	}
	return err
}

// open opens the store of a kind.
func open(kind, at string, s *zksync.Session) Store {
	switch kind {
	case "postgres", "sqlite3":
		db, err := sql.Open(kind, at)
		if err != nil {
			panic(err)
		}
		return Row{db, "tea"}
	case "file":
		return File(at)
	default:
		return Node{s, at}
	}
}

// take takes two pieces in a transaction, in which it is ready between the claim and the write.
func take(ctx context.Context, kind, at string, l *zksync.Lease, ready func()) error {
	db, err := sql.Open(strings.TrimSuffix(kind, " transaction"), at)
	if err != nil {
		return err
	}
	defer db.Close()
	return Transaction(ctx, db, "tea", l, func(tx *sql.Tx) error {
		ready()
		_, err := tx.ExecContext(ctx, `UPDATE stock SET pieces = pieces - 2 WHERE item = $1`, "tea")
		return err
	})
}

// short is the session timeout of the processes that are stopped, long that of the others, which a busy machine must not end.
const short, long = 3 * time.Second, time.Minute

// process is a process that holds the lock.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// start starts one, and returns when it is ready to write.
func start(t *testing.T, srv *zktest.Server, kind, at string) *process {
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), self)}
	p.cmd.Env = append(os.Environ(), "FENCING_KIND="+kind, "FENCING_AT="+at, "FENCING_SERVERS="+srv.Addr())
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(out)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	require.Equal(t, "ready true", p.says())
	return p
}

func (p *process) says() string {
	require.True(p.t, p.lines.Scan(), "the process has ended: %v", p.lines.Err())
	return p.lines.Text()
}

// pause stops the process as it is about to write.
func (p *process) pause() {
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	var status syscall.WaitStatus // a signal takes effect later than it is sent
	_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(p.t, err)
	require.True(p.t, status.Stopped())
	_, err = io.WriteString(p.in, "\n") // it reads this when it goes on
	require.NoError(p.t, err)
}

// goesOn lets it go on, and returns what it says of its write.
func (p *process) goesOn() string {
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGCONT))
	return p.says()
}

// granted is the lease of another holder, of this process, which is granted when the session of the stopped one has expired.
func granted(t *testing.T, srv *zktest.Server) (*zksync.Session, *zksync.Lease) {
	s, err := zksync.Connect(t.Context(), srv.Addr(), zksync.WithTimeout(long))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	l, err := zksync.NewMutex(s, "/lock").LockContext(t.Context())
	require.NoError(t, err)
	return s, l
}

func TestTheWriteOfAStoppedProcessIsRefused(t *testing.T) {
	t.Parallel()
	for kind, place := range map[string]func(t *testing.T, srv *zktest.Server) (at string){
		"postgres": func(t *testing.T, _ *zktest.Server) string { _, dsn := database(t); return dsn },
		"sqlite3":  func(t *testing.T, _ *zktest.Server) string { _, dsn := sqlite(t); return dsn },
		"file": func(t *testing.T, _ *zktest.Server) string {
			at := filepath.Join(t.TempDir(), "tea")
			require.NoError(t, os.WriteFile(at, []byte(`{"Token":"0000000000000001-00000000","Pieces":10}`), 0o600))
			return at
		},
		"zookeeper": func(_ *testing.T, srv *zktest.Server) string {
			srv.Create("/tea", []byte("10"), 0, 0)
			return "/tea"
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := zktest.RunAddr(t, "127.0.0.1:0", zktest.WithTimeoutLimits(short, long))
			at := place(t, srv)
			p := start(t, srv, kind, at)
			p.pause()
			s, l := granted(t, srv)
			store := open(kind, at, s)
			pieces, err := store.Claim(t.Context(), l)
			require.NoError(t, err)
			require.Equal(t, 10, pieces)
			require.NoError(t, store.Write(t.Context(), l, pieces-1))
			said := p.goesOn()
			require.Contains(t, said, refusal[kind])
			t.Log(said)
			pieces, err = store.Claim(t.Context(), l)
			require.NoError(t, err)
			require.Equal(t, 9, pieces)
		})
	}
}

// refusal is a part of what the stopped process says of its write.
var refusal = map[string]string{
	"postgres": "a later holder has claimed it", "sqlite3": "a later holder has claimed it", "file": "a later holder has claimed it",
	"zookeeper": "lost",
}

// sqlite makes a file with the table and ten pieces of tea.
func sqlite(t *testing.T) (*sql.DB, string) {
	dsn := "file:" + filepath.Join(t.TempDir(), "stock.db") + "?_busy_timeout=2000"
	return filled(t, "sqlite3", dsn, SQLite), dsn
}

// PostgreSQL ends the transaction of a stopped process, if it is told after which time. The other holder waits for that.
func TestPostgresEndsTheTransactionOfAStoppedProcess(t *testing.T) {
	t.Parallel()
	srv := zktest.RunAddr(t, "127.0.0.1:0", zktest.WithTimeoutLimits(short, long))
	db, dsn := database(t)
	p := start(t, srv, "postgres transaction", dsn+" idle_in_transaction_session_timeout=5000")
	p.pause()
	_, l := granted(t, srv)
	require.NoError(t, Transaction(t.Context(), db, "tea", l, func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE stock SET pieces = pieces - 1 WHERE item = 'tea'`)
		return err
	}))
	said := p.goesOn()
	require.Contains(t, said, "error: ")
	t.Log(said)
	var pieces int
	require.NoError(t, db.QueryRow(`SELECT pieces FROM stock`).Scan(&pieces))
	require.Equal(t, 9, pieces)
}

// SQLite never ends a transaction. While the process is stopped no other one can write; when it is killed they can.
func TestSQLiteIsLockedUntilTheStoppedProcessEnds(t *testing.T) {
	t.Parallel()
	srv := zktest.RunAddr(t, "127.0.0.1:0", zktest.WithTimeoutLimits(short, long))
	db, dsn := sqlite(t)
	p := start(t, srv, "sqlite3 transaction", dsn)
	p.pause()
	_, l := granted(t, srv)
	_, err := Row{db, "tea"}.Claim(t.Context(), l)
	require.ErrorContains(t, err, "database is locked")
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	pieces, err := Row{db, "tea"}.Claim(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, 10, pieces, "what it had changed was not committed")
}
