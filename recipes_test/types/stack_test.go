package types_test

import (
	"context"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

const module = "github.com/go-menagerie/menagerie/"

// The way from the public method to the request, without these two. A stack trace should fit on a screen.
const (
	mostFrames   = 12
	mostClosures = 2
)

func TestTheWayFromACallToItsRequestIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		p := &stacks{}
		s, err := zksync.Connect(t.Context(), "zktest:2181", zksync.WithDialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := srv.DialContext(ctx, network, addr)
			return stackConn{conn, p}, err
		}))
		require.NoError(t, err)
		defer s.Close()
		m := zkmap.New[string, int](s, "/map")
		q := zkqueue.New[int](s, "/queue")
		mu := zksync.NewMutex(s, "/lock")
		n := zkatomic.NewInt64(s, "/n")
		calls := []struct {
			name string
			call func()
		}{
			{"zkmap.(*Map[...]).Store", func() { require.NoError(t, m.Store(t.Context(), "k", 1)) }},
			{"zkqueue.(*Queue[...]).Receive", func() { receive(t, q) }},
			{"zksync.(*Mutex).LockContext", func() { lock(t, mu) }},
			{"zkatomic.(*Int64).Add", func() { _, err := n.Add(t.Context(), 1); require.NoError(t, err) }},
		}
		for _, c := range calls {
			c.call() // the first use of the object makes its nodes
			p.record(true)
			c.call()
			p.record(false)
			longest := p.longest(c.name)
			require.Greater(t, len(longest), 2)
			between := longest[1 : len(longest)-1]
			t.Logf("%s: %d frames, %d closures\n\t%s", c.name, len(between), closures(between), strings.Join(longest, "\n\t"))
			assert.LessOrEqual(t, len(between), mostFrames, c.name)
			assert.LessOrEqual(t, closures(between), mostClosures, c.name)
		}
	})
}

func receive(t *testing.T, q *zkqueue.Queue[int]) {
	require.NoError(t, q.Put(t.Context(), 1))
	d, err := q.Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, d.Ack(t.Context()))
}

func lock(t *testing.T, mu *zksync.Mutex) {
	l, err := mu.LockContext(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
}

// stacks are the stacks of the requests while they are recorded: the functions of the module from the outermost one to the one
// that hands the request to the connection.
type stacks struct {
	mu  sync.Mutex
	on  bool
	all [][]string
}

func (p *stacks) record(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on = on; on {
		p.all = nil
	}
}

// longest is the longest way to a request of those that began at the function; without one, in a goroutine of the session.
func (p *stacks) longest(from string) (longest []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, whole := range []bool{false, true} {
		for _, s := range p.all {
			if at := slices.Index(s, from); at >= 0 {
				s = s[at:]
			} else if !whole {
				continue
			}
			if len(s) > len(longest) {
				longest = s
			}
		}
		if longest != nil {
			break
		}
	}
	return longest
}

func closures(stack []string) (n int) {
	for _, f := range stack {
		if strings.Contains(f, ".func") {
			n++
		}
	}
	return n
}

// add notes the stack of a request, if it goes through the function that hands requests of our own to the connection.
func (p *stacks) add() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.on {
		return
	}
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var stack []string
	sent := false
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, ours := strings.CutPrefix(f.Function, module)
		name = strings.TrimPrefix(name, "internal/")
		sent = sent || name == "zkconn.(*wire).send"
		if ours && sent && !strings.HasPrefix(name, "recipes_test/") {
			stack = append(stack, name)
		}
	}
	slices.Reverse(stack)
	if sent && !slices.Contains(stack, "zkconn.(*wire).sendHeartbeat") {
		p.all = append(p.all, stack)
	}
}

type stackConn struct {
	net.Conn
	p *stacks
}

func (c stackConn) Write(b []byte) (int, error) {
	c.p.add()
	return c.Conn.Write(b)
}
