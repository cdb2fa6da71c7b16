package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is how many connections there are, and how many requests each has under way.
type load struct{ conns, window int }

var loads = []load{{1, 1}, {1, 64}, {16, 1}, {16, 64}}

// The operation codes and flags that are used here.
const (
	opCreate, opDelete, opExists, opGet, opSet, opChildren = 1, 2, 3, 4, 5, 8

	flagEphemeral, flagSequential = 1, 2
)

// workload says what a lane does, one request after the other. A connection has as many lanes as
// requests under way.
type workload struct {
	name string
	// children is how many the node "/…/n" has.
	children int
	// request writes the next request for a lane. body is the reply to the lane's last one, nil at first; done
	// tells that an operation is complete.
	request func(c *client, dir string, lane int32, body []byte) (done bool)
}

var workloads = []workload{
	{"create", 0, func(c *client, dir string, lane int32, _ []byte) bool {
		c.create(lane, dir+"/n/s-", flagSequential)
		return true
	}},
	{"create+delete", 0, func(c *client, dir string, lane int32, body []byte) bool {
		if len(body) == 0 {
			c.create(lane, dir+"/n/e-", flagEphemeral|flagSequential)
			return true
		}
		c.begin(lane, opDelete)
		c.text(string(body[4 : 4+binary.BigEndian.Uint32(body)]))
		c.int32(-1)
		c.end()
		return false
	}},
	{"set", 0, func(c *client, dir string, lane int32, _ []byte) bool {
		c.begin(lane, opSet)
		c.text(dir + "/n")
		c.text(data)
		c.int32(-1)
		c.end()
		return true
	}},
	{"get", 0, onNode(opGet)},
	{"exists", 0, onNode(opExists)},
	{"getChildren of 100", 100, onNode(opChildren)},
}

func onNode(op int32) func(*client, string, int32, []byte) bool {
	return func(c *client, dir string, lane int32, _ []byte) bool {
		c.begin(lane, op)
		c.text(dir + "/n")
		c.bool(false)
		c.end()
		return true
	}
}

var data = string(make([]byte, 100))

func (c *client) create(xid int32, path string, flags int32) {
	c.begin(xid, opCreate)
	c.text(path)
	c.text(data)
	c.int32(1)
	c.int32(31)
	c.text("world")
	c.text("anyone")
	c.int32(flags)
	c.end()
}

var dirs atomic.Int64

// measure runs a workload for a while under a new directory and returns how many operations were
// completed in which time.
func measure(dial func() (net.Conn, error), l workload, at load, d time.Duration) (int, time.Duration, error) {
	clients, dir, err := prepare(dial, l, at)
	defer leave(clients)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	n, err := together(clients, l, dir, at, func(done int) bool { return done%32 == 0 && time.Since(begin) > d })
	return n, time.Since(begin), err
}

// prepare opens the connections and makes the nodes, in a new directory.
func prepare(dial func() (net.Conn, error), l workload, at load) (clients []*client, dir string, err error) {
	dir = fmt.Sprintf("/speed-%d-%d", time.Now().UnixNano(), dirs.Add(1))
	for range at.conns {
		c, err := open(dial)
		if err != nil {
			return clients, dir, err
		}
		clients = append(clients, c)
	}
	return clients, dir, clients[0].furnish(dir, l.children)
}

func leave(clients []*client) {
	for _, c := range clients {
		c.close()
	}
}

// together lets each connection work until enough says so about the number of its operations.
func together(clients []*client, l workload, dir string, at load, enough func(done int) bool) (int, error) {
	var done atomic.Int64
	var g errgroup.Group
	for _, c := range clients {
		g.Go(func() error {
			n, err := c.work(l, dir, at.window, enough)
			done.Add(int64(n))
			return err
		})
	}
	err := g.Wait()
	return int(done.Load()), err
}

// furnish makes the nodes that a workload expects.
func (c *client) furnish(dir string, children int) error {
	c.create(0, dir, 0)
	c.create(0, dir+"/n", 0)
	for i := range children {
		c.create(0, fmt.Sprintf("%s/n/child-%04d", dir, i), 0)
	}
	if err := c.flush(); err != nil {
		return err
	}
	for range children + 2 {
		if _, _, err := c.reply(); err != nil {
			return err
		}
	}
	return nil
}

// work keeps a number of lanes busy until there is enough, and waits for their last replies.
func (c *client) work(l workload, dir string, lanes int, enough func(done int) bool) (done int, err error) {
	for lane := range lanes {
		l.request(c, dir, int32(lane), nil)
	}
	over := false
	for busy := lanes; busy > 0; {
		if c.r.Buffered() == 0 && len(c.out) > 0 {
			if err := c.flush(); err != nil {
				return done, err
			}
		}
		lane, body, err := c.reply()
		if err != nil {
			return done, err
		}
		over = over || enough(done)
		switch {
		case over:
			busy--
			done++
		case l.request(c, dir, lane, body):
			done++
		}
	}
	return done, nil
}
