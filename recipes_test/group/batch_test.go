package zkgroup_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const (
	batchWorkers = 8
	batchItems   = 64
	batchTimeout = 4 * time.Second // of the sessions

	batchEnv   = "MENAGERIE_BATCH"        // how long the test lasts; "make batch" sets it
	workerEnv  = "MENAGERIE_BATCH_WORKER" // of a worker: its ID
	serversEnv = "MENAGERIE_BATCH_SERVERS"
	pathEnv    = "MENAGERIE_BATCH_PATH"
	notesEnv   = "MENAGERIE_BATCH_NOTES" // the file in which a worker notes what it does
)

// stay is one run of an item's function.
type stay struct {
	Item, Worker string
	From         int64 // by the clock of this machine, in nanoseconds
	To           int64 // 0 if the worker was killed before
}

// TestAcceptance193ABatchOfWorkersThatAreKilledAtRandomEndsWhenAllIsDone spreads items over processes, of which one is killed with SIGKILL
// now and then, and started again, until all are done. Then every worker ends by itself. No item is worked on by two at the same
// time, nor begun after it was recorded, and nothing but the record is left, which says to a worker that comes later that nothing is to be done.
func TestAcceptance193ABatchOfWorkersThatAreKilledAtRandomEndsWhenAllIsDone(t *testing.T) {
	if os.Getenv(workerEnv) != "" {
		batchWorker(t)
		return
	}
	t.Parallel()
	limit, err := time.ParseDuration(cmp.Or(os.Getenv(batchEnv), "10s"))
	require.NoError(t, err)
	servers := os.Getenv(ensemble.ServersEnv)
	if servers == "" {
		srv, err := zktest.StartAddr("127.0.0.1:0")
		require.NoError(t, err)
		defer srv.Close()
		servers = srv.Addr()
	}
	admin, err := zksync.Connect(t.Context(), servers, zksync.WithTimeout(time.Minute))
	require.NoError(t, err)
	defer admin.Close()
	root := "/batch-" + rand.Text()
	made(t, admin.Conn(), root)
	b := &batch{t: t, servers: servers, conn: admin.Conn(), dir: t.TempDir()}
	started := time.Now()
	for rounds := 1; ; rounds++ {
		b.round(fmt.Sprintf("%s/round-%d", root, rounds))
		if time.Since(started) > limit {
			t.Logf("%d rounds of %d items, %d workers killed, %d runs of which %d were cut short and %d came to their end though an earlier one had, in %v",
				rounds, batchItems, b.kills, b.runs, b.cut, b.again, time.Since(started).Round(time.Second))
			break
		}
	}
	require.Positive(t, b.kills)
	require.Positive(t, b.cut, "somebody was killed while it worked")
}

// made makes a node.
func made(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	_, err := conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

type batch struct {
	t                       *testing.T
	servers, dir            string
	conn                    *zk.Conn
	kills, runs, cut, again int
}

// process is a worker.
type process struct {
	cmd   *exec.Cmd
	notes string
	said  bytes.Buffer  // what it has printed
	dead  chan struct{} // closed when it has ended
	err   error         // how, after that
	ended int64         // when that was known
}

func (b *batch) start(path string, id int) *process {
	b.t.Helper()
	p := &process{notes: filepath.Join(b.dir, rand.Text()), dead: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0], "-test.run=^"+b.t.Name()+"$", "-test.count=1")
	p.cmd.Env = append(os.Environ(), workerEnv+"=worker-"+strconv.Itoa(id), serversEnv+"="+b.servers, pathEnv+"="+path, notesEnv+"="+p.notes)
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	require.NoError(b.t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		p.ended = time.Now().UnixNano()
		close(p.dead)
	}()
	b.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.dead })
	return p
}

// kill kills a worker, which must not have ended by itself, unless all is done.
func (b *batch) kill(p *process) {
	b.t.Helper()
	killed := p.cmd.Process.Kill()
	<-p.dead
	if p.err == nil {
		return
	}
	require.NoError(b.t, killed)
	require.EqualError(b.t, p.err, "signal: killed", "it has ended by itself:\n%s", &p.said)
	b.kills++
}

// round has all items done once.
func (b *batch) round(path string) {
	t := b.t
	made(t, b.conn, path)
	for i := range batchItems {
		made(t, b.conn, fmt.Sprintf("%s/item-%02d", path, i))
	}
	workers := make([]*process, batchWorkers)
	for i := range workers {
		workers[i] = b.start(path, i)
	}
	all := slices.Clone(workers)
	deadline := time.Now().Add(3 * time.Minute)
	for len(b.recorded(path)) < batchItems {
		require.True(t, time.Now().Before(deadline), "%d items are done", len(b.recorded(path)))
		time.Sleep(time.Duration(200+mathrand.IntN(1200)) * time.Millisecond)
		i := mathrand.IntN(len(workers))
		if b.kill(workers[i]); len(b.recorded(path)) == batchItems {
			break
		}
		workers[i] = b.start(path, i)
		all = append(all, workers[i])
	}
	recorded := b.recorded(path)
	late := b.start(path, batchWorkers)
	all = append(all, late)
	for _, p := range append(workers, late) {
		<-p.dead
		require.True(t, p.err == nil || p.err.Error() == "signal: killed", "a worker ends when all is done: %v\n%s", p.err, &p.said)
	}
	b.nothingIsLeft(path)
	b.check(path, recorded, all)
}

// recorded are the items that the group has recorded as done, and when.
func (b *batch) recorded(path string) map[string]int64 {
	all := make(map[string]int64)
	for _, round := range b.children(path + "/workers/zkgroup") {
		if !strings.HasPrefix(round, "round-") {
			continue
		}
		for _, name := range b.children(path + "/workers/zkgroup/" + round) {
			item, ok := strings.CutPrefix(name, "item-")
			if !ok {
				continue
			}
			if there, stat, err := b.conn.Exists(path + "/workers/zkgroup/" + round + "/" + name); err == nil && there {
				all[item] = stat.Czxid
			}
		}
	}
	return all
}

// children lists a node; there are none if it does not exist.
func (b *batch) children(path string) []string {
	b.t.Helper()
	_, err := b.conn.Sync(path)
	require.NoError(b.t, err)
	names, _, err := b.conn.Children(path)
	if !errors.Is(err, zk.ErrNoNode) {
		require.NoError(b.t, err)
	}
	return names
}

// nothingIsLeft waits until the sessions of those that were killed have ended, and with them all members, workers and locks. The
// record of the round is kept.
func (b *batch) nothingIsLeft(path string) {
	left := func() (nodes []string) {
		group := path + "/workers/zkgroup"
		nodes = append(b.children(group+"/members"), b.children(group+"/working")...)
		for _, item := range b.children(group + "/items") { // containers, which the servers remove later
			nodes = append(nodes, b.children(group+"/items/"+item)...)
		}
		return nodes
	}
	for deadline := time.Now().Add(5 * batchTimeout); len(left()) > 0; time.Sleep(200 * time.Millisecond) {
		require.True(b.t, time.Now().Before(deadline), "%v is left", left())
	}
}

// check looks at what all workers have noted, and at what their runs have written.
func (b *batch) check(path string, recorded map[string]int64, all []*process) {
	t := b.t
	byItem := make(map[string][]stay)
	for _, p := range all {
		notes, err := os.ReadFile(p.notes)
		if os.IsNotExist(err) {
			continue // it was killed before it began
		}
		require.NoError(t, err)
		open := make(map[string]stay)
		for lines := bufio.NewScanner(bytes.NewReader(notes)); lines.Scan(); {
			var s stay
			if json.Unmarshal(lines.Bytes(), &s) != nil {
				continue // the last line may be cut off
			}
			if s.To == 0 {
				open[s.Item] = s
				continue
			}
			delete(open, s.Item)
			byItem[s.Item] = append(byItem[s.Item], s)
		}
		for _, s := range open { // it was killed meanwhile
			s.To = p.ended
			byItem[s.Item] = append(byItem[s.Item], s)
			b.cut++
		}
	}
	require.Len(t, byItem, batchItems)
	for item, stays := range byItem {
		slices.SortFunc(stays, func(x, y stay) int { return cmp.Compare(x.From, y.From) })
		for i := range stays {
			b.runs++
			if i > 0 {
				require.LessOrEqual(t, stays[i-1].To, stays[i].From, "%s: %v and %v at the same time", item, stays[i-1], stays[i])
			}
		}
		b.inOrder(path+"/"+item, recorded[item])
	}
}

// inOrder looks at the nodes that the runs of an item have made, in the order in which the servers did. recorded is when the group
// recorded the item as done, by the servers' count of changes.
func (b *batch) inOrder(item string, recorded int64) {
	t := b.t
	runs := b.children(item)
	slices.SortFunc(runs, func(x, y string) int { return cmp.Compare(x[len(x)-10:], y[len(y)-10:]) })
	ended := 0
	for i, run := range runs {
		token, stat, err := b.conn.Get(item + "/" + run)
		require.NoError(t, err)
		require.Less(t, stat.Czxid, recorded, "%s: run %d of %d began after it was recorded as done", item, i+1, len(runs))
		if stat.Version > 0 {
			ended++
			require.Less(t, stat.Mzxid, recorded, "%s: run %d of %d ended after it was recorded as done", item, i+1, len(runs))
		}
		if i > 0 {
			before, _, err := b.conn.Get(item + "/" + runs[i-1])
			require.NoError(t, err)
			require.Less(t, string(before), string(token), "%s: the fencing tokens of its runs", item)
		}
	}
	require.Positive(t, ended, "%s is recorded as done, and no run of it came to its end", item)
	b.again += ended - 1 // it had ended, but the worker was killed before the group recorded that
}

// batchWorker works until all is done.
func batchWorker(t *testing.T) {
	ctx := context.Background()
	notes, err := os.Create(os.Getenv(notesEnv))
	require.NoError(t, err)
	s, err := zksync.Connect(ctx, os.Getenv(serversEnv), zksync.WithTimeout(batchTimeout), zksync.WithName(os.Getenv(workerEnv)))
	require.NoError(t, err)
	defer s.Close()
	path := os.Getenv(pathEnv)
	group := zkgroup.New(s, path+"/workers")
	me, err := group.Join(ctx, zkgroup.Member{ID: os.Getenv(workerEnv)})
	require.NoError(t, err)
	var items []string
	for i := range batchItems {
		items = append(items, fmt.Sprintf("item-%02d", i))
	}
	note := func(x stay) {
		line, _ := json.Marshal(x)
		_, _ = notes.Write(append(line, '\n')) // one write: it is there whole, or not at all
	}
	require.NoError(t, group.Assign(ctx, me, items, func(ctx context.Context, item string, l *zksync.Lease) error {
		x := stay{Item: item, Worker: os.Getenv(workerEnv), From: time.Now().UnixNano()}
		note(x)
		defer func() {
			x.To = time.Now().UnixNano()
			note(x)
		}()
		// Only who holds the lease can write that its run begins and ends.
		token := fmt.Sprintf("%016x-%016x", l.Token().Zxid, l.Token().Seq)
		begun, err := l.Guard(t.Context(), &zk.CreateRequest{Path: path + "/" + item + "/run-", Data: []byte(token), Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagSequence})
		if err != nil {
			return err
		}
		select {
		case <-time.After(time.Duration(500+mathrand.IntN(3000)) * time.Millisecond):
			_, err = l.Guard(t.Context(), &zk.SetDataRequest{Path: begun[0].String, Data: []byte(token), Version: -1})
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}, zkgroup.WithUntilDone()))
}
