package recipes_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// realEnv is a chroot of its own on real servers, removed at the end of the test.
func realEnv(t *testing.T, servers string) *env {
	t.Helper()
	startPulse()
	v := &env{t: t, servers: servers, chroot: "/recipes-" + rand.Text(), late: time.Duration(pulse.late.Load())}
	ctx, cancel := context.WithTimeout(context.Background(), v.patience())
	defer cancel()
	admin, err := zksync.Connect(ctx, v.leader(), zksync.WithTimeout(time.Minute))
	require.NoError(t, err)
	v.admin = admin
	v.adminCreate(v.chroot, "")
	t.Cleanup(func() {
		v.adminRemoveAll(v.chroot)
		require.NoError(t, admin.Close())
	})
	return v
}

// leader is the address of the server that the others follow; one alone follows nobody.
func (v *env) leader() string {
	v.t.Helper()
	for addr := range strings.SplitSeq(v.servers, ",") {
		if _, leads := v.mntr(addr)["zk_synced_followers"]; leads {
			return addr
		}
	}
	return v.servers
}

// catchUp has the leader apply all that any server has confirmed by now: it answers a sync without waiting for that, and
// may lag behind a follower. A write is applied after all before it. A follower's sync waits until it has what its leader has.
func (v *env) catchUp() {
	v.t.Helper()
	if v.virtual {
		return
	}
	_, err := v.admin.Conn().Set(v.chroot, nil, -1)
	require.NoError(v.t, err)
}

func (v *env) adminChildren(dir string) []string {
	v.t.Helper()
	v.catchUp()
	names, _, err := v.admin.Conn().Children(dir)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	require.NoError(v.t, err)
	return names
}

func (v *env) adminCreate(node, data string) {
	v.t.Helper()
	_, err := v.admin.Conn().Create(node, []byte(data), 0, zk.WorldACL(zk.PermAll))
	require.NoError(v.t, err)
}

func (v *env) adminExists(node string) bool {
	v.t.Helper()
	v.catchUp()
	there, _, err := v.admin.Conn().Exists(node)
	require.NoError(v.t, err)
	return there
}

func (v *env) adminData(node string) string {
	v.t.Helper()
	v.catchUp()
	data, _, err := v.admin.Conn().Get(node)
	require.NoError(v.t, err)
	return string(data)
}

// adminRemoveAll removes a tree whose ephemeral nodes may be going at the same time.
func (v *env) adminRemoveAll(node string) {
	v.t.Helper()
	for {
		for _, name := range v.adminChildren(node) {
			v.adminRemoveAll(node + "/" + name)
		}
		err := v.admin.Conn().Delete(node, -1)
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return
		}
		require.ErrorIs(v.t, err, zk.ErrNotEmpty)
	}
}

// requests is how many requests the servers were sent by the recipes, and the watches that were set anew, without
// heartbeats and handshakes.
func (v *env) requests() int {
	v.t.Helper()
	if v.srv != nil {
		return v.srv.Requests() + v.srv.RequestsBy(zktest.SetWatches)
	}
	return v.tally(func(c *cable) int { return len(c.sent) })
}

// tellOperations returns what logs the operations that each session asks real servers for from now on: a test
// that fails shows them.
func (v *env) tellOperations() func() {
	from := map[*cable]int{}
	v.tally(func(c *cable) int { from[c] = len(c.sent); return 0 })
	return func() {
		v.t.Helper()
		v.tally(func(c *cable) int { v.t.Logf("operations: %v", c.sent[from[c]:]); return 0 })
	}
}

// events is how many watch events the servers have sent.
func (v *env) events() int {
	v.t.Helper()
	if v.srv != nil {
		return v.srv.Notifications()
	}
	sum := 0
	for addr := range strings.SplitSeq(v.servers, ",") {
		counters := v.mntr(addr)
		for _, what := range []string{"created", "deleted", "changed", "children"} {
			sum += counters["zk_sum_node_"+what+"_watch_count"]
		}
	}
	return sum
}

// watches is how many watches the servers hold, for all clients.
func (v *env) watches() int {
	v.t.Helper()
	if v.srv != nil {
		return v.srv.Watches()
	}
	sum := 0
	for addr := range strings.SplitSeq(v.servers, ",") {
		sum += v.mntr(addr)["zk_watch_count"]
	}
	return sum
}

// mntr asks one server for its counters.
func (v *env) mntr(addr string) map[string]int {
	v.t.Helper()
	conn, err := net.DialTimeout("tcp", addr, v.patience())
	require.NoError(v.t, err)
	defer conn.Close()
	require.NoError(v.t, conn.SetDeadline(time.Now().Add(v.patience())))
	_, err = io.WriteString(conn, "mntr")
	require.NoError(v.t, err)
	counters := map[string]int{}
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "\t")
		if n, err := strconv.Atoi(value); err == nil {
			counters[key] = n
		}
	}
	require.Contains(v.t, counters, "zk_packets_received", "%s does not allow mntr", addr)
	return counters
}
