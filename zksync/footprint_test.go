package zksync

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These print the figures of docs/benchmarks.md (with -v). MENAGERIE_FULL=1 takes 100 000 locks.

// raced is 2 with the race detector, which makes stacks larger.
const raced = bytesEach / (64 << 10)

// The client library makes a buffer of 1.5 MB before it knows that it is to have a small one. Nothing touches its pages, so
// it takes no memory as long as the collector has not given them to others.
func TestConnectTouchesLittleMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	servers := serverProcess(t)
	connected(t, servers)
	const n, most = 50, 256 << 10 * raced
	before := resident(t)
	for range n {
		connected(t, servers)
	}
	each := (resident(t) - before) / n
	t.Logf("Connect: %d bytes of physical memory", each)
	require.Less(t, each, int64(most))
}

func connected(t *testing.T, servers string) *Session {
	s, err := Connect(context.Background(), servers, WithTimeout(30*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// resident is the physical memory of this process.
func resident(t *testing.T) int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if os.IsNotExist(err) {
		t.Skip("only Linux says so in /proc")
	}
	require.NoError(t, err)
	var size, pages int64
	_, err = fmt.Sscan(string(text), &size, &pages)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}

func TestSessionsMutexesAndHeldLocksTakeLittleMemory(t *testing.T) {
	n := 2000
	if os.Getenv("MENAGERIE_FULL") == "1" {
		n = 100_000
	}
	servers := serverProcess(t)
	s := connected(t, servers)
	relock(t, NewMutex(s, "/first"))
	fits := func(what string, n int, before, most int64) {
		var each int64
		fit := func() bool { each = (inUse() - before) / int64(n); return each < most }
		for deadline := time.Now().Add(10 * time.Second); !fit() && time.Now().Before(deadline); { // the last of them may still be busy
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("%d x %s: %d bytes of heap and stacks for each", n, what, each)
		require.Less(t, each, most, what)
	}
	before := inUse()
	for range 50 {
		connected(t, servers)
	}
	fits("a session", 50, before, 48<<10*raced)
	before = inUse()
	all := make([]*Mutex, n)
	for i := range all {
		all[i] = NewMutex(s, fmt.Sprintf("/many/lock-%06d", i))
	}
	fits("a Mutex and its path", n, before, 1<<10)
	onEach(all, func(m *Mutex) { m.Lock() })
	fits("a Mutex that is held", n, before, 3500)
	onEach(all, func(m *Mutex) { m.Unlock() })
	fits("a Mutex that was held", n, before, 2200) // the session remembers what is at the path
	runtime.KeepAlive(all)
}

// onEach calls f for all, for 64 at a time.
func onEach(all []*Mutex, f func(m *Mutex)) {
	var wg sync.WaitGroup
	for part := range 64 {
		wg.Go(func() {
			for i := part; i < len(all); i += 64 {
				f(all[i])
			}
		})
	}
	wg.Wait()
}

// small is a program with one Mutex.
const small = `package main

import (
	"context"

	"github.com/go-menagerie/menagerie/zksync"
)

func main() {
	s, err := zksync.Connect(context.Background(), "127.0.0.1:2181")
	if err != nil {
		panic(err)
	}
	defer s.Close()
	m := zksync.NewMutex(s, "/locks/a")
	m.Lock()
	defer m.Unlock()
}
`

func TestAProgramWithAMutexIsSmall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(small), 0o600))
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file+".out", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(file + ".out")
	require.NoError(t, err)
	t.Logf("%d bytes", info.Size())
	require.Less(t, info.Size(), int64(9<<20))
}
