package bench

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// plainConn is a connection of the unmodified client library.
type plainConn struct {
	conn   *zk.Conn
	events <-chan zk.Event
	stop   func() bool // ends the watch over the opening context
	once   sync.Once
}

// dialPlain returns when there is a session. The end of ctx closes the connection, also
// later: the library's calls know no other way to be interrupted.
func dialPlain(ctx context.Context, at Site) (*plainConn, error) {
	servers, _ := splitServers(at.Servers)
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return at.Dial(ctx, network, address)
	}
	conn, events, err := zk.Connect(servers, at.Timeout, zk.WithDialer(dial), zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	c := &plainConn{conn: conn, events: events}
	for {
		select {
		case <-ctx.Done():
			c.stop = func() bool { return true }
			c.close()
			return nil, context.Cause(ctx)
		case e, ok := <-events:
			if !ok {
				return nil, fmt.Errorf("bench: the connection to %s was closed", at.Servers)
			}
			if e.State == zk.StateHasSession {
				if err := c.present(at.Secured.Auth); err != nil {
					c.stop = func() bool { return true }
					c.close()
					return nil, err
				}
				c.stop = context.AfterFunc(ctx, c.shut)
				// After the library has reported the session, it reads its list of watches without a lock. It does not
				// report when it has done so. A watch that is set meanwhile is a data race.
				time.Sleep(10 * time.Millisecond)
				return c, nil
			}
		}
	}
}

// present shows the servers the credentials.
func (c *plainConn) present(auth []Credential) error {
	for _, cred := range auth {
		if err := c.conn.AddAuth(cred.Scheme, cred.Secret); err != nil {
			return fmt.Errorf("bench: credential of scheme %s: %w", cred.Scheme, err)
		}
	}
	return nil
}

// close ends the session and waits until the library has done so: it closes the channel of
// events at the very end. It never does if a request was under way at a bad moment, when it has three
// answers for a channel with room for two; then it is left.
func (c *plainConn) close() {
	c.stop()
	c.shut()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range c.events {
		}
	}()
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
	}
}

func (c *plainConn) shut() { c.once.Do(c.conn.Close) }

type silent struct{}

func (silent) Printf(string, ...any) {}
