package zksync

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// BenchmarkHandoverOfZk is the lock of the client library. One operation is one hand-over: compare BenchmarkHandover.
func BenchmarkHandoverOfZk(b *testing.B) {
	servers := benchServers(b)
	for _, n := range []int{2, 8, 32} {
		var conns []*zk.Conn
		for range n {
			c, events, err := zk.Connect(strings.Split(servers, ","), 30*time.Second, zk.WithLogInfo(false))
			require.NoError(b, err)
			b.Cleanup(c.Close)
			go func() {
				for range events { // a full channel would keep the connection from going on
				}
			}()
			conns = append(conns, c)
		}
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			path := benchPath()
			var wg sync.WaitGroup
			b.ResetTimer()
			for i, c := range conns {
				l := zk.NewLock(c, path, zk.WorldACL(zk.PermAll))
				wg.Go(func() {
					for range portion(b.N, n, i) {
						require.NoError(b, l.Lock())
						require.NoError(b, l.Unlock())
					}
				})
			}
			wg.Wait()
		})
	}
}

// portion is the part of all that falls to the i-th of n.
func portion(all, n, i int) int { return all/n + (all%n+n-1-i)/n }

// BenchmarkHandoverFloor is the least that a queue of sessions can cost: three requests for each hand-over. A node is
// made, the node ahead is watched, and the node is deleted. What a lock must find out is told in memory: the name of the
// node ahead. Nothing is proved, fenced or cleaned up. One operation is one hand-over: compare BenchmarkHandover.
func BenchmarkHandoverFloor(b *testing.B) {
	servers := benchServers(b)
	for _, n := range []int{2, 8, 32} {
		sessions := benchSessions(b, servers, n)
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			line := &floorLine{dir: benchPath(), nodes: make(map[int]chan string)}
			e := line.epoch(b, sessions[0])
			_, err := e.Create(context.Background(), line.dir, nil, 0, zk.WorldACL(zk.PermAll))
			require.NoError(b, err)
			var wg sync.WaitGroup
			b.ResetTimer()
			for i, s := range sessions {
				e := line.epoch(b, s)
				wg.Go(func() {
					for range portion(b.N, n, i) {
						line.turn(b, e)
					}
				})
			}
			wg.Wait()
		})
	}
}

// floorLine is a directory of sequential nodes, and the names of these nodes by number.
type floorLine struct {
	dir string

	mu    sync.Mutex
	nodes map[int]chan string
}

func (*floorLine) epoch(b *testing.B, s *Session) *zkconn.Epoch {
	e, err := (*session.Session)(s).Client().Epoch(context.Background())
	require.NoError(b, err)
	return e
}

// node holds the path of the node of this number, once its maker knows it.
func (l *floorLine) node(number int) chan string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nodes[number] == nil {
		l.nodes[number] = make(chan string, 1)
	}
	return l.nodes[number]
}

// turn makes a node, waits until the one ahead has gone, and deletes it.
func (l *floorLine) turn(b *testing.B, e *zkconn.Epoch) {
	create := &zk.CreateRequest{Path: l.dir + "/n-", Flags: zk.FlagEphemeral | zk.FlagSequence, Acl: zk.WorldACL(zk.PermAll)}
	made, err := e.StartMulti(create).Wait(context.Background(), e)
	require.NoError(b, err)
	own := made[0].String
	number, err := strconv.Atoi(own[strings.LastIndexByte(own, '-')+1:])
	require.NoError(b, err)
	l.node(number) <- own
	if number > 0 {
		gone := make(chan struct{}, 1)
		e.WatchAll([]string{<-l.node(number - 1)}, func(string, zkconn.Event) { gone <- struct{}{} }, nil)
		<-gone
	}
	_, err = e.StartDelete(own).Wait(context.Background(), e)
	require.NoError(b, err)
}
