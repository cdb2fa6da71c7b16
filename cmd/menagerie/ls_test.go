//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestAnUnusedQueueIsNoErrorAndAMissingOneIsToldApart(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "lock", "/used", "--servers", s.addr, "--", "true").succeeded()
	p := run(t, "ls", "/used", "--servers", s.addr)
	p.succeeded()
	require.Regexp(t, `^nobody holds or waits for /used; empty: .* or anything else\n$`, p.stdout.String())
	p = run(t, "ls", "--json", "/used", "--servers", s.addr)
	p.succeeded()
	require.Equal(t, "[]\n", p.stdout.String())

	p = run(t, "ls", "/never/used", "--servers", s.addr)
	p.failed(exitNoSuchPath, "/never/used does not exist")
	require.Empty(t, p.stdout.String())
	p = run(t, "ls", "--json", "/never/used", "--servers", s.addr)
	p.failed(exitNoSuchPath, "/never/used does not exist")
	require.Equal(t, "[]\n", p.stdout.String(), "still an array for whoever reads it")
	run(t, "ls", "/used", "--servers", s.addr+"/app").failed(exitNoSuchPath, "/used does not exist", "the chroot /app")
	run(t, "ls", "--servers", s.addr+"/app").failed(exitNoSuchPath, "/ does not exist", "the chroot /app")
}

func TestHolderAndWaitersAreListedInOrder(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := holder(t, s, "/locks/a")
	w := start(t, "lock", "/locks/a", "--servers", s.addr, "--", "true")
	s.queued(t, "/locks/a", 2)

	p := run(t, "ls", "/locks/a", "--servers", s.addr, "--json")
	p.succeeded()
	var raw []map[string]any
	require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &raw))
	require.Len(t, raw, 2)
	for _, r := range raw {
		require.ElementsMatch(t, []string{"position", "kind", "state", "owner", "since", "session", "token", "node"}, keys(r))
		require.ElementsMatch(t, []string{"host", "pid", "name"}, keys(r["owner"].(map[string]any)))
	}

	host, err := os.Hostname()
	require.NoError(t, err)
	rows := contenders(t, s.addr, "/locks/a")
	require.Len(t, rows, 2)
	for i, who := range []struct {
		p     *program
		name  string
		state string
	}{{h, "sh", "held"}, {w, "true", "waiting"}} {
		r := rows[i]
		require.Equal(t, rows[0].Position+i, r.Position)
		require.EqualValues(t, "lock", r.Kind)
		require.EqualValues(t, who.state, r.State)
		require.Equal(t, tree.Owner{Host: host, PID: who.p.cmd.Process.Pid, Name: who.name}, r.Owner)
		since, err := time.Parse(time.RFC3339, r.Since)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), since, patience)
		require.Regexp(t, `^0x[0-9a-f]+$`, r.Session)
		require.Regexp(t, `^/locks/a/.*-lock-\d{10}$`, r.Node)
	}
	require.Regexp(t, `^[0-9a-f]{16}-[0-9a-f]{8}$`, rows[0].Token)

	table := run(t, "ls", "-l", "/locks/a", "--servers", s.addr)
	table.succeeded()
	lines := strings.Split(strings.TrimSuffix(table.stdout.String(), "\n"), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, []string{"POS", "KIND", "STATE", "OWNER", "SINCE", "SESSION", "TOKEN", "NODE"}, strings.Fields(lines[0]))
	require.Contains(t, lines[1], rows[0].Node)
	require.Contains(t, lines[1], rows[0].Session)
	require.Contains(t, lines[2], "waiting")
}

func TestTheEnvironmentNamesTheServers(t *testing.T) {
	s := startServer(t)
	t.Setenv(serversEnv, s.addr)
	run(t, "lock", "/a", "--", "true").succeeded()
	_, ok := s.Node("/a")
	require.True(t, ok)
	// A flag wins.
	run(t, "ls", "/a", "--servers", nobody(t), "--connect-timeout", "200ms").failed(exitFailure, "cannot reach")
}

func TestAChrootIsHonoured(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	require.Zero(t, run(t, "lock", "/a", "--servers", s.addr+"/app", "--", "true").wait()) // it reports that it has made the chroot
	_, ok := s.Node("/app/a")
	require.True(t, ok)
	p := holder(t, &server{addr: s.addr + "/app"}, "/a")
	rows := contenders(t, s.addr+"/app", "/a")
	require.Len(t, rows, 1)
	require.Equal(t, p.cmd.Process.Pid, rows[0].Owner.PID)
	require.Contains(t, rows[0].Node, "/a/_c_")
}

func keys(m map[string]any) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

// Servers with a greater jute.maxbuffer store such nodes.
func TestANodeThatIsTooLongToReadIsListedWithItsSize(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t)
	srv.Create("/app", nil, 0, 0)
	srv.Create("/app/big", make([]byte, 5<<20), 0, 0)
	p := run(t, "ls", "-r", "/app", "--servers", srv.Addr())
	p.succeeded()
	require.Regexp(t, `/app/big .*5242880 bytes of data, nothing below`, p.stdout.String())
	p = run(t, "ls", "/app/big", "--servers", srv.Addr())
	p.succeeded()
	require.Contains(t, p.stdout.String(), "5242880 bytes of data")
}
