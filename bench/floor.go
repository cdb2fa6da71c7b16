package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-zookeeper/zk"
)

// floor is the least that a queue of sessions can cost. A client makes an ephemeral sequential node, waits until the one
// ahead has gone, and deletes its node. What a lock must find out is told in memory: whether there is a node
// ahead, and its name. Nothing is proved, fenced or cleaned up.
var floor = NewPeer("floor", map[string]Opener{Uncontended: floorQueue, Async: floorQueue, Contended: floorQueue, Deep: floorQueue, Crowd: floorQueue, Fleet: floorQueue, Many: plainMany(newLine)})

var floorQueue = Exclusive(func(ctx context.Context, at Site) (*Crew, error) {
	l := &line{nodes: make(map[int]chan string)}
	return Plain(l.client)(ctx, at)
})

// newLine is a client that is alone in its line.
func newLine(c *zk.Conn, path string, acl []zk.ACL) Locker {
	return (&line{nodes: make(map[int]chan string)}).client(c, path, acl)
}

// line tells the path of each node of a slice, by its number. The channel holds it while the node is there and nobody has asked, and is closed afterwards.
type line struct {
	mu    sync.Mutex
	nodes map[int]chan string
}

func (l *line) client(c *zk.Conn, path string, acl []zk.ACL) Locker {
	return &lineClient{line: l, conn: c, prefix: path + "/floor-", acl: acl}
}

func (l *line) node(number int) chan string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nodes[number] == nil {
		l.nodes[number] = make(chan string, 1)
	}
	return l.nodes[number]
}

type lineClient struct {
	*line
	conn   *zk.Conn
	prefix string
	acl    []zk.ACL
	path   string
	number int
}

func (c *lineClient) Acquire(ctx context.Context) (err error) {
	if c.path, err = c.conn.Create(c.prefix, nil, zk.FlagEphemeral|zk.FlagSequence, c.acl); err != nil {
		return err
	}
	if c.number, err = strconv.Atoi(c.path[len(c.prefix):]); err != nil {
		return fmt.Errorf("number of %s: %w", c.path, err)
	}
	c.node(c.number) <- c.path
	if c.number == 0 {
		return nil
	}
	select {
	case path, there := <-c.node(c.number - 1):
		if !there {
			return nil
		}
		return c.await(ctx, path)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *lineClient) await(ctx context.Context, path string) error {
	there, _, left, err := c.conn.ExistsW(path)
	if err != nil || !there {
		return err
	}
	select {
	case <-left:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *lineClient) Release() error {
	if err := c.conn.Delete(c.path, -1); err != nil {
		return err
	}
	own := c.node(c.number)
	select {
	case <-own: // nobody asked
	default:
	}
	close(own)
	return nil
}
