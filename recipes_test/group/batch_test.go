package zkgroup_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/ensemble"
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
	Done         bool
	Valid        bool // the lease, at its end
}

// TestABatchOfWorkersThatAreKilledAtRandom spreads items over processes, of which one is killed with SIGKILL now and then,
// and started again. No item is worked on by two at the same time, none is done twice without its node saying so, and in the end
// all are done.
func TestABatchOfWorkersThatAreKilledAtRandom(t *testing.T) {
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
			t.Logf("%d rounds of %d items, %d workers killed, %d runs of which %d were cut short, in %v", rounds, batchItems, b.kills, b.runs, b.cut, time.Since(started).Round(time.Second))
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
	t                *testing.T
	servers, dir     string
	conn             *zk.Conn
	kills, runs, cut int
}

// process is a worker.
type process struct {
	cmd   *exec.Cmd
	notes string
	ended int64 // when it was known to be dead
}

func (b *batch) start(path string, id int) *process {
	b.t.Helper()
	p := &process{notes: filepath.Join(b.dir, rand.Text())}
	p.cmd = exec.Command(os.Args[0], "-test.run=^"+b.t.Name()+"$", "-test.count=1")
	p.cmd.Env = append(os.Environ(), workerEnv+"=worker-"+strconv.Itoa(id), serversEnv+"="+b.servers, pathEnv+"="+path, notesEnv+"="+p.notes)
	p.cmd.Stderr = os.Stderr
	require.NoError(b.t, p.cmd.Start())
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it says that it was killed
	p.ended = time.Now().UnixNano()
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
	for b.done(path) < batchItems {
		require.True(t, time.Now().Before(deadline), "%d items are done", b.done(path))
		time.Sleep(time.Duration(200+mathrand.IntN(1200)) * time.Millisecond)
		i := mathrand.IntN(len(workers))
		workers[i].kill()
		b.kills++
		workers[i] = b.start(path, i)
		all = append(all, workers[i])
	}
	for _, p := range workers {
		p.kill()
	}
	b.check(path, all)
}

// done is how many items were done, by their nodes: their versions count how often.
func (b *batch) done(path string) (n int) {
	for i := range batchItems {
		_, stat, err := b.conn.Get(fmt.Sprintf("%s/item-%02d", path, i))
		if err == nil && stat.Version > 0 {
			n++
		}
	}
	return n
}

// check looks at what all workers have noted.
func (b *batch) check(path string, all []*process) {
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
		done := 0
		for i, s := range stays {
			b.runs++
			if i > 0 {
				require.LessOrEqual(t, stays[i-1].To, s.From, "%s: %v and %v at the same time", item, stays[i-1], s)
			}
			if s.Done {
				done++
			}
		}
		_, stat, err := b.conn.Get(path + "/" + item)
		require.NoError(t, err)
		// A worker that is killed after the write has not noted that it was done.
		require.LessOrEqual(t, done, int(stat.Version), "%s was done more often than its node says", item)
	}
}

// batchWorker is what a worker does until it is killed.
func batchWorker(t *testing.T) {
	ctx := context.Background()
	s, err := zksync.Connect(ctx, os.Getenv(serversEnv), zksync.WithTimeout(batchTimeout), zksync.WithName(os.Getenv(workerEnv)))
	require.NoError(t, err)
	notes, err := os.Create(os.Getenv(notesEnv))
	require.NoError(t, err)
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
	err = group.Assign(ctx, me, items, func(ctx context.Context, item string, l *zksync.Lease) error {
		x := stay{Item: item, Worker: os.Getenv(workerEnv), From: time.Now().UnixNano()}
		note(x)
		select {
		case <-time.After(time.Duration(500+mathrand.IntN(3000)) * time.Millisecond):
			_, err = l.Guard(&zk.SetDataRequest{Path: path + "/" + item, Data: []byte(x.Worker), Version: -1})
			x.Done = err == nil
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		x.To, x.Valid = time.Now().UnixNano(), l.Valid()
		note(x)
		return err
	})
	require.NoError(t, err)
}
