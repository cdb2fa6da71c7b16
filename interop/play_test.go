package interop

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// expected is how a scenario ends, on the real server and on ours.
type expected struct {
	result string
	left   string         // nodes under its path that stay; separated by spaces
	spoil  []*zktest.Rule // what goes wrong meanwhile on our server, where that can be had
}

// lose makes requests lose their answers: the first that matches each rule, unless that says which.
func lose(rules ...*zktest.Rule) []*zktest.Rule {
	for _, r := range rules {
		r.Times(1).LoseReply()
	}
	return rules
}

// play runs all scenarios of a program on both servers and looks how they end.
func play(t *testing.T, library string, p *program, want map[string]expected) {
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), p.scenarios)
	t.Run("zktest", func(t *testing.T) {
		t.Parallel()
		f := newFake(t)
		spoiled := map[string]*zktest.Interception{}
		for name, e := range want {
			for i, rule := range e.spoil {
				spoiled[fmt.Sprint(name, i)] = f.srv.Intercept(rule)
			}
		}
		playOn(t, library, p, "fake", f, want)
		for name, in := range spoiled {
			require.Equal(t, 1, in.Fired(), name)
		}
		for _, r := range f.srv.Log() {
			require.NotEqual(t, int32(-6), r.Code, "unimplemented: %v", r)
		}
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		t.Parallel()
		playOn(t, library, p, "real", newGenuine(t), want)
	})
}

func playOn(t *testing.T, library string, p *program, prefix string, on target, want map[string]expected) {
	outcomes := map[string]<-chan outcome{}
	for name := range want {
		if name != "restart" {
			outcomes[name] = p.start(prefix+"-"+name, name, on)
		}
	}
	conn, hangUp := connect(t, on)
	defer func() { hangUp() }()
	check := func(t *testing.T, name string) {
		awaitEqual(t, want[name].left, func() string { return strings.Join(left(t, conn, "/"+library+"-"+name), " ") })
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, want[name].result, await(t, outcomes[name]))
			check(t, name)
		})
	}
	if _, ok := want["restart"]; ok {
		// By itself: it would cut the connections of the others, too, and our own.
		hangUp()
		t.Run("restart", func(t *testing.T) {
			require.Equal(t, want["restart"].result, await(t, p.start(prefix+"-restart", "restart", on)))
			conn, hangUp = connect(t, on)
			check(t, "restart")
		})
	}
	// Only our own session is left. Some clients do not wait until the server has closed theirs.
	for name, n := range map[string]int{"zk_global_sessions": 1, "zk_watch_count": 0, "zk_ephemerals_count": 0} {
		awaitEqual(t, n, func() int { return gauge(t, on, name) })
	}
}

// awaitEqual waits until a value is as it should be: containers are removed after a while, and so is the session of
// a client whose close request the server has not had.
func awaitEqual[T comparable](t *testing.T, want T, get func() T) {
	t.Helper()
	for end := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		got := get()
		if got == want || time.Now().After(end) {
			require.Equal(t, want, got)
			return
		}
	}
}

// connect opens a session to look at nodes with, and returns how to end it.
func connect(t *testing.T, on target) (conn *zk.Conn, hangUp func()) {
	t.Helper()
	conn, events, err := zk.Connect([]string{on.addr()}, time.Minute, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	require.NoError(t, err)
	return conn, sync.OnceFunc(func() {
		conn.Close()
		for range events {
		}
	})
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// left lists the nodes below a path.
func left(t *testing.T, conn *zk.Conn, root string) []string {
	var found []string
	var walk func(p string)
	walk = func(p string) {
		names, _, err := conn.Children(p)
		if err == zk.ErrNoNode {
			return
		}
		require.NoError(t, err)
		if p != root {
			found = append(found, strings.TrimPrefix(p, root+"/"))
		}
		slices.Sort(names)
		for _, name := range names {
			walk(path.Join(p, name))
		}
	}
	walk(root)
	return found
}
