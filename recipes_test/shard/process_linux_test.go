package zkshard_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
)

// The environment of a process of the test.
const (
	toEnv   = "SHARD_TO"
	fromEnv = "SHARD_FROM"
	dirEnv  = "SHARD_DIR" // has a file for each name: the kernel knows who holds its lock, and frees it with the process
)

// processMain locks names until it is told to end. A second holder finds the file locked.
func processMain(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	opts := []zksync.SessionOption{zksync.WithTimeout(4 * time.Second)}
	if from := os.Getenv(fromEnv); from != "" {
		opts = append(opts, zkshard.WithMoving(list(from)))
	}
	var s *zkshard.Shards
	for s == nil && ctx.Err() == nil { // as a supervisor would
		var err error
		if s, err = zkshard.Connect(ctx, list(os.Getenv(toEnv)), opts...); err != nil {
			fmt.Println("REFUSED", err)
			time.Sleep(200 * time.Millisecond)
		}
	}
	if s == nil {
		return
	}
	fmt.Println("READY")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for ctx.Err() == nil {
				name := names[rand.IntN(len(names))]
				_ = s.NewMutex(name).Do(ctx, func(ctx context.Context, leases zksync.Leases) error {
					f, err := os.OpenFile(filepath.Join(os.Getenv(dirEnv), name), os.O_RDWR|os.O_CREATE, 0o600)
					require.NoError(t, err)
					defer f.Close()
					if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil && leases.Valid() {
						fmt.Println("VIOLATION", name, err)
					}
					fmt.Println("HELD", name)
					pause(ctx, time.Duration(rand.IntN(60))*time.Millisecond)
					return nil
				})
			}
		})
	}
	all.Wait()
	require.NoError(t, s.Close())
}

// worker is a real process.
type worker struct {
	t    *testing.T
	cmd  *exec.Cmd
	dead chan struct{}

	mu    sync.Mutex
	said  bytes.Buffer
	ready atomic.Bool
}

func (p *worker) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said.Write(b)
	if strings.Contains(string(b), "READY") {
		p.ready.Store(true)
	}
	return len(b), nil
}

func (p *worker) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// Two ensembles, real processes: the old ones become moving ones, and these new ones. Half of them are killed.
func TestAcceptance219RealProcessesMoveFromOneEnsembleToTwo(t *testing.T) {
	if os.Getenv(toEnv) != "" {
		processMain(t)
		return
	}
	if os.Getenv(ensemble.ServersEnv) == "" {
		t.Skip("starts two real ensembles, so it runs with make test-ensemble")
	}
	t.Parallel()
	a, b := ensemble.ForTest(t, 1), ensemble.ForTest(t, 1)
	dir := t.TempDir()
	start := func(to, from string) *worker {
		p := &worker{t: t, dead: make(chan struct{})}
		p.cmd = exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		p.cmd.Env = append(os.Environ(), toEnv+"="+to, fromEnv+"="+from, dirEnv+"="+dir)
		p.cmd.Stdout, p.cmd.Stderr = p, p
		require.NoError(t, p.cmd.Start())
		go func() { _ = p.cmd.Wait(); close(p.dead) }()
		t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.dead })
		return p
	}
	one, two := a.Connect()+"/app", a.Connect()+"/app "+b.Connect()+"/app"
	slots := make([]*worker, 3)
	var all []*worker
	rollout := func(to, from string) {
		for i, p := range slots {
			if p != nil {
				if i%2 == 0 {
					require.NoError(t, p.cmd.Process.Kill())
				} else {
					require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
				}
				<-p.dead
			}
			slots[i] = start(to, from)
			all = append(all, slots[i])
			require.Eventually(t, slots[i].ready.Load, time.Minute, 10*time.Millisecond, "%s: %s", to, slots[i].text)
		}
		for _, p := range slots {
			held := strings.Count(p.text(), "HELD")
			require.Eventually(t, func() bool { return strings.Count(p.text(), "HELD") > held+10 }, time.Minute, 10*time.Millisecond, "locks")
		}
	}
	rollout(one, "")
	early := start(two, "") // a new one that comes too soon, again and again
	require.Eventually(t, func() bool { return strings.Contains(early.text(), "REFUSED") }, time.Minute, 10*time.Millisecond)
	require.False(t, early.ready.Load())
	rollout(two, one)
	rollout(two, "")
	require.Eventually(t, early.ready.Load, time.Minute, 10*time.Millisecond, "it is a new process as any other now")
	late := start(one, "")
	require.Eventually(t, func() bool { return strings.Contains(late.text(), "REFUSED") }, time.Minute, 10*time.Millisecond)
	for _, p := range append(all, early, late) {
		require.NotContains(t, p.text(), "VIOLATION")
	}
	require.False(t, late.ready.Load())
}
