package zksync

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serverEnv makes the process of a test a server.
const serverEnv = "MENAGERIE_TEST_SERVER_PROCESS"

// TestServerProcess is no test: it is the server of other tests, in a process of its own.
func TestServerProcess(t *testing.T) {
	if os.Getenv(serverEnv) == "" {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer Serve(l)()
	fmt.Println(l.Addr())
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent ends
}

// serverProcess starts a server in a process of its own, whose memory does not count. It returns its address.
func serverProcess(t testing.TB) string {
	cmd := exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
	cmd.Env = append(os.Environ(), serverEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		require.NoError(t, cmd.Wait())
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(addr)
}

// A session that waits for a lock is to cost so little that ten thousand of them fit into one process. Listings
// of two hundred names must not stay with each who waits, either.
func TestASessionThatWaitsTakesLessThan64KB(t *testing.T) {
	const n, most = 200, bytesEach
	servers := serverProcess(t)
	first := waitingSessions(t, servers, 20) // what is allocated once must not count
	defer first()
	before := inUse()
	release := waitingSessions(t, servers, n)
	defer release()
	// The last of them may still be busy with what they listed before they wait.
	require.Eventually(t, func() bool {
		each := (inUse() - before) / n
		t.Logf("%d bytes of heap and stacks for each", each)
		return each < most
	}, 20*time.Second, 10*time.Millisecond)
}

// waitingSessions has n sessions wait for one lock. The function that it returns lets them have it, and waits for them.
func waitingSessions(t *testing.T, servers string, n int) (release func()) {
	path := benchPath()
	all := make([]*Mutex, n+1)
	for i := range all {
		s, err := Connect(context.Background(), servers, WithTimeout(30*time.Second))
		require.NoError(t, err)
		t.Cleanup(func() { s.Close() })
		all[i] = NewMutex(s, path)
	}
	all[n].Lock()
	var waiters sync.WaitGroup
	for _, m := range all[:n] {
		waiters.Go(func() {
			m.Lock()
			m.Unlock()
		})
	}
	queued(t, all[n], n+1, n)
	return func() {
		all[n].Unlock()
		waiters.Wait()
	}
}

// inUse is the memory that heap objects and stacks take. The parts of heap
// pages that are free now are left out: how many there are depends on what was there at the last collection.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // what a finalizer or a pool held on to at the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
