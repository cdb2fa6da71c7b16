//go:build !race

package share

import (
	"net"
	"sync"
)

// gate keeps back what the server says.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // nil while it is open
	held int           // connections with something to say
}

func (g *gate) wait(over <-chan struct{}) {
	for {
		g.mu.Lock()
		shut := g.shut
		if shut == nil {
			g.mu.Unlock()
			return
		}
		g.held++
		g.mu.Unlock()
		select {
		case <-shut:
		case <-over:
		}
		g.mu.Lock()
		g.held--
		g.mu.Unlock()
		select {
		case <-over:
			return
		default:
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
		g.shut = nil
	}
}

func (g *gate) pending() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held > 0
}

// gated is the server's end of a connection.
type gated struct {
	net.Conn
	g    *gate
	over chan struct{}
	once sync.Once
}

func (c *gated) Write(b []byte) (int, error) {
	c.g.wait(c.over)
	return c.Conn.Write(b)
}

func (c *gated) Close() error {
	err := c.Conn.Close() // first, or what waits at the gate might yet be heard
	c.once.Do(func() { close(c.over) })
	return err
}
