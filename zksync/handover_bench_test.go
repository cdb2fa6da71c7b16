package zksync

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// BenchmarkHandoverFloor is the least that a queue of sessions can cost: three requests for each hand-over. A node is
// made, the node ahead is watched, and the node is deleted. What a lock must find out is told in memory: the name of the
// node ahead. Nothing is proved, fenced or cleaned up. One operation is one hand-over: compare BenchmarkHandover.
func BenchmarkHandoverFloor(b *testing.B) {
	servers := benchServers(b)
	for _, n := range []int{8, 32} {
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
					for range b.N/n + (b.N%n+n-1-i)/n {
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
