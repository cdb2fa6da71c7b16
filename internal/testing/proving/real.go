package proving

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// RealEnv is a chroot of its own on real servers, removed at the end of the test.
func RealEnv(t *testing.T, servers string) *Env {
	t.Helper()
	startPulse()
	v := &Env{T: t, servers: servers, Chroot: "/recipes-" + rand.Text(), late: time.Duration(pulse.late.Load())}
	ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
	defer cancel()
	admin, err := zksync.Connect(ctx, v.leader(), zksync.WithTimeout(time.Minute))
	require.NoError(t, err)
	v.Admin = admin
	v.adminCreate(v.Chroot, "")
	t.Cleanup(func() {
		v.adminRemoveAll(v.Chroot)
		require.NoError(t, admin.Close())
	})
	return v
}

// leader is the address of the server that the others follow; one alone follows nobody.
func (v *Env) leader() string {
	v.T.Helper()
	for addr := range strings.SplitSeq(v.servers, ",") {
		if strings.Contains(v.ask(addr, "mntr"), "zk_synced_followers") {
			return addr
		}
	}
	return v.servers
}

// catchUp has the leader apply all that any server has confirmed by now: it answers a sync without waiting for that, and
// may lag behind a follower. A write is applied after all before it. A follower's sync waits until it has what its leader has.
func (v *Env) catchUp() {
	v.T.Helper()
	if v.Virtual {
		return
	}
	_, err := v.Admin.Conn().Set(v.Chroot, nil, -1)
	require.NoError(v.T, err)
}

func (v *Env) adminChildren(dir string) []string {
	v.T.Helper()
	v.catchUp()
	names, _, err := v.Admin.Conn().Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	require.NoError(v.T, err)
	return names
}

func (v *Env) adminCreate(node, data string) {
	v.T.Helper()
	_, err := v.Admin.Conn().Create(node, []byte(data), 0, zk.WorldACL(zk.PermAll))
	require.NoError(v.T, err)
}

func (v *Env) adminExists(node string) bool {
	v.T.Helper()
	v.catchUp()
	there, _, err := v.Admin.Conn().Exists(node)
	require.NoError(v.T, err)
	return there
}

func (v *Env) adminData(node string) string {
	v.T.Helper()
	v.catchUp()
	data, _, err := v.Admin.Conn().Get(node)
	require.NoError(v.T, err)
	return string(data)
}

// adminRemoveAll removes a tree whose ephemeral nodes may be going at the same time.
func (v *Env) adminRemoveAll(node string) {
	v.T.Helper()
	for {
		for _, name := range v.adminChildren(node) {
			v.adminRemoveAll(node + "/" + name)
		}
		err := v.Admin.Conn().Delete(node, -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return
		}
		require.ErrorIs(v.T, err, zk.ErrNotEmpty)
	}
}

// Requests is how many requests the servers were sent by the recipes, and the watches that were set again, without
// heartbeats and handshakes.
func (v *Env) Requests() int {
	v.T.Helper()
	if v.Server != nil {
		return v.Server.Requests() + v.Server.RequestsBy(zktest.SetWatches)
	}
	return v.tally(func(c *Cable) int { return len(c.sent) })
}

// tellOperations returns what logs the operations that each session asks real servers for from now on: a test
// that fails shows them.
func (v *Env) tellOperations() func() {
	from := map[*Cable]int{}
	v.tally(func(c *Cable) int { from[c] = len(c.sent); return 0 })
	return func() {
		v.T.Helper()
		v.tally(func(c *Cable) int { v.T.Logf("operations: %v", c.sent[from[c]:]); return 0 })
	}
}

// Events is how many watch events the servers have told the sessions of the test.
func (v *Env) Events() int {
	v.T.Helper()
	if v.Server != nil {
		return v.Server.Notifications()
	}
	return v.tally(func(c *Cable) int { return c.told })
}

// Watches is how many watches the servers hold for the test.
func (v *Env) Watches() int {
	v.T.Helper()
	if v.Server != nil {
		return v.Server.Watches()
	}
	sum := 0
	for addr := range strings.SplitSeq(v.servers, ",") {
		ours := false
		for line := range strings.Lines(v.ask(addr, "wchp")) { // a path, and indented below it the sessions that watch it
			switch {
			case !strings.HasPrefix(line, "\t"):
				ours = strings.HasPrefix(line, v.Chroot)
			case ours:
				sum++
			}
		}
	}
	return sum
}

// ask sends a server a four-letter word.
func (v *Env) ask(addr, word string) string {
	v.T.Helper()
	conn, err := net.DialTimeout("tcp", addr, v.Patience())
	require.NoError(v.T, err)
	defer conn.Close()
	require.NoError(v.T, conn.SetDeadline(time.Now().Add(v.Patience())))
	_, err = io.WriteString(conn, word)
	require.NoError(v.T, err)
	answer, err := io.ReadAll(conn)
	require.NoError(v.T, err)
	require.NotContains(v.T, string(answer), "whitelist", "%s does not allow %s", addr, word)
	return string(answer)
}
