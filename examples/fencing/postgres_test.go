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
	"syscall"
	"testing"

	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"
)

// postgres is a cluster of the tests' own, which listens at a Unix socket in its directory. TestMain ends it.
type postgres struct{ dir, bin string }

var cluster = sync.OnceValues(startPostgres)

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
	if err := p.run("initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "--no-instructions"); err != nil {
		return nil, err
	}
	options := fmt.Sprintf("-k %s -c listen_addresses= -c fsync=off -c shared_buffers=4MB -c max_connections=20", p.dir)
	return p, p.run("pg_ctl", "start", "-w", "-D", data, "-l", filepath.Join(p.dir, "log"), "-o", options)
}

// programs is the folder with PostgreSQL's programs, which Debian has not in its PATH.
func programs() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(initdb), nil
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(all) == 0 {
		return "", errors.New("there is no PostgreSQL: apt-get install postgresql")
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

func (p *postgres) run(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(p.bin, program), args...)
	cmd.Dir, cmd.SysProcAttr = p.dir, &syscall.SysProcAttr{Credential: owner()}
	// A file and no pipe: the server inherits it, and a pipe would be waited for as long as the server lives.
	out, err := os.CreateTemp("", "fencing")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", cmd, err, said)
	}
	return nil
}

func (p *postgres) stop() {
	_ = p.run("pg_ctl", "stop", "-m", "immediate", "-D", filepath.Join(p.dir, "data"))
	_ = os.RemoveAll(p.dir)
}

// dsn is what the driver needs to connect.
func (p *postgres) dsn(database string) string {
	return fmt.Sprintf("host=%s user=postgres dbname=%s sslmode=disable", p.dir, database)
}

// database makes a database with the table and ten pieces of tea.
func database(t *testing.T, name, schema string) (*sql.DB, string) {
	p, err := cluster()
	if err != nil && os.Getenv("CI") == "" && p == nil {
		t.Skip(err)
	}
	require.NoError(t, err)
	admin, err := sql.Open("postgres", p.dsn("postgres"))
	require.NoError(t, err)
	defer admin.Close()
	_, err = admin.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	return filled(t, "postgres", p.dsn(name), schema), p.dsn(name)
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
