package top

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

var now = time.Date(2026, 11, 29, 1, 31, 54, 0, time.UTC)

// lock is an object of kind lock whose entries are in the order of their turn.
func lock(path string, entries ...*survey.Entry) *survey.Object {
	o := &survey.Object{Object: tree.Object{Path: path, Kind: "lock", State: "free", Detail: "nobody holds or waits", Queue: true}, Grants: -1}
	for i, e := range entries {
		e.Position, e.Node = i, fmt.Sprintf("%s/n_%010d", path, i)
		if i > 0 && e.State == zksync.Waiting {
			e.Ahead, e.Behind = entries[i-1].Node, entries[i-1].Owned()
		}
		o.Object.Entries, o.Entries = append(o.Object.Entries, e.Row), append(o.Entries, e)
	}
	if len(entries) > 0 {
		o.State, o.Detail = "held", tree.HeldBy(o.In(zksync.Held), now)
	}
	return o
}

// holds is a holder, waits a waiter, for a duration until now.
func holds(host string, pid int, d time.Duration) *survey.Entry {
	return entry(zksync.Held, host, pid, d)
}
func waits(host string, pid int, d time.Duration) *survey.Entry {
	return entry(zksync.Waiting, host, pid, d)
}

func entry(st zksync.Standing, host string, pid int, d time.Duration) *survey.Entry {
	return &survey.Entry{For: survey.Millis(d), Row: tree.Row{Kind: zksync.KindLock, State: st, Session: fmt.Sprintf("0x%x", pid),
		Owner: tree.Owner{Host: host, PID: pid, Name: "backup.sh"}, Since: now.Add(-d).Format(time.RFC3339), Token: "000000000000000a-00000000"}}
}

// usually is a lock that was held before.
func usually(o *survey.Object, median, p99 time.Duration, grants float64) *survey.Object {
	o.Usual, o.Grants = survey.Usual{Holds: 40, Median: survey.Millis(median), P99: survey.Millis(p99)}, grants
	for _, e := range o.Entries {
		if e.State == zksync.Held {
			e.Ratio = float64(e.For) / float64(median)
		}
	}
	return o
}

// scene is a view of healthy servers from half a second ago.
func scene(objects ...*survey.Object) *survey.View {
	three := []servers.Server{{Addr: "zk1:2181", Serves: true, Mode: "follower"}, {Addr: "zk2:2181", Serves: true, Mode: "leader"}, {Addr: "zk3:2181", Serves: true, Mode: "follower"}}
	return &survey.View{Root: "/", At: now.Add(-500 * time.Millisecond), Objects: objects, Servers: &servers.Report{Servers: three, Tells: true}}
}

func busy() *survey.View {
	return scene(
		lock("/locks/a"),
		usually(lock("/locks/nightly", holds("db1", 19, 45*time.Second), waits("db2", 44, 9*time.Second), waits("db3", 7, 2*time.Second)), 1200*time.Millisecond, 3*time.Second, 0.4),
		usually(lock("/locks/report", holds("web-3", 4711, 2500*time.Millisecond)), time.Second, 2*time.Second, 12),
	)
}

// shows compares a frame with lines of text.
func shows(t *testing.T, want string, v *survey.View, s State, width, height int) {
	t.Helper()
	if s.Dir == "" {
		s.Dir = "/"
	}
	got := Frame(v, s, width, height, now)
	var lines []string
	for line := range strings.SplitSeq(got, "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	require.Equal(t, strings.TrimPrefix(want, "\n"), strings.Join(lines, "\n")+"\n")
}
