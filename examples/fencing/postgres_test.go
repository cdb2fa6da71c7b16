//go:build unix

package fencing

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"
)

// postgres is a cluster of the tests' own, which listens at a Unix socket in its directory. TestMain ends it.
type postgres struct {
	dir, bin  string
	server    *exec.Cmd
	databases atomic.Int32
}

var (
	cluster   = sync.OnceValues(startPostgres)
	running   atomic.Pointer[postgres] // nil until it is started
	errAbsent = errors.New("there is no PostgreSQL: apt-get install postgresql")
)

// startPostgres makes and starts the cluster. Root does that as the user postgres, because initdb refuses root.
func startPostgres() (p *postgres, err error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	p = &postgres{bin: bin}
	if p.dir, err = os.MkdirTemp("", "fencing"); err != nil {
		return nil, err
	}
	if c := owner(); c != nil {
		if err := os.Chown(p.dir, int(c.Uid), int(c.Gid)); err != nil {
			return nil, err
		}
	}
	data := filepath.Join(p.dir, "data")
	if out, err := p.command("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	p.server = p.command("postgres", "-D", data, "-k", p.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=4MB")
	if err := p.server.Start(); err != nil {
		return nil, err
	}
	running.Store(p)
	return p, p.answers()
}

// answers waits until the server does.
func (p *postgres) answers() error {
	db, err := sql.Open("postgres", p.dsn("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	for end := time.Now().Add(time.Minute); ; {
		if err := db.Ping(); err == nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *postgres) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: owner()}
	return cmd
}

func (p *postgres) stop() {
	_ = p.server.Process.Signal(syscall.SIGQUIT)
	_ = p.server.Wait()
	_ = os.RemoveAll(p.dir)
}

// programs is the folder with PostgreSQL's programs, which Debian has not in its PATH.
func programs() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		initdb, err = filepath.EvalSymlinks(initdb)
		return filepath.Dir(initdb), err
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(all) == 0 {
		return "", errAbsent
	}
	return slices.Max(all), nil
}

// owner is the user of the cluster, or nil for the present one.
func owner() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return &syscall.Credential{Uid: 65534, Gid: 65534} // nobody
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// dsn is what the driver needs to connect.
func (p *postgres) dsn(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s sslmode=disable", p.dir, database)
}

// database makes a database with the table and ten pieces of tea.
func database(t *testing.T) (*sql.DB, string) {
	p, err := cluster()
	if errors.Is(err, errAbsent) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	admin, err := sql.Open("postgres", p.dsn("postgres"))
	require.NoError(t, err)
	defer admin.Close()
	name := fmt.Sprintf("shop%d", p.databases.Add(1))
	_, err = admin.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	return filled(t, "postgres", p.dsn(name), Postgres), p.dsn(name)
}

// filled has the table and ten pieces of tea.
func filled(t *testing.T, driver, dsn, schema string) *sql.DB {
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.Exec(schema)
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO stock (item, pieces) VALUES ('tea', 10)`)
	require.NoError(t, err)
	return db
}
