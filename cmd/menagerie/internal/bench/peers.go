package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/zksync"
)

// The peers, by the names that they have in the output.
const (
	peerMenagerie = "menagerie"
	peerLock      = "gozk-lock"
	peerFloor     = "floor"
)

// client is one session of a peer.
type client interface {
	// acquire returns when the lock is held. Once ctx is done it may fail.
	acquire(ctx context.Context) error
	release() error
	close()
}

// site is where the clients of a peer meet.
type site struct {
	servers string // as given, chroot included
	timeout time.Duration
	secured Secured
	path    string // below the chroot
	meter   *meter
}

// below is the place of that name below this one.
func (at site) below(name string) site {
	at.path += "/" + name
	return at
}

// dial opens a connection on which requests are counted: above TLS, or they could not be told.
func (at site) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := (&net.Dialer{}).DialContext
	if at.secured.TLS != nil {
		dial = (&tls.Dialer{Config: at.secured.TLS}).DialContext
	}
	c, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return at.meter.wrap(c), nil
}

type opener func(ctx context.Context, at site) (client, error)

var peers = []struct {
	name string
	open opener
}{
	{peerMenagerie, openMenagerie},
	{peerLock, openLock},
	{peerFloor, openFloor},
}

// menagerieClient is zksync.Mutex as a user of this module gets it.
type menagerieClient struct {
	session *zksync.Session
	mutex   *zksync.Mutex
	lease   *zksync.Lease
}

func openMenagerie(ctx context.Context, at site) (client, error) {
	opts := []zksync.Option{zksync.WithTimeout(at.timeout), zksync.WithDialer(at.dial), zksync.WithACL(at.secured.acl()...)}
	for _, c := range at.secured.Auth {
		opts = append(opts, zksync.WithAuth(c.Scheme, c.Secret))
	}
	s, err := zksync.Connect(ctx, at.servers, opts...)
	if err != nil {
		return nil, err
	}
	return &menagerieClient{session: s, mutex: zksync.NewMutex(s, at.path)}, nil
}

func (c *menagerieClient) acquire(ctx context.Context) (err error) {
	c.lease, err = c.mutex.LockContext(ctx)
	return err
}

func (c *menagerieClient) release() error { return c.lease.Unlock() }

func (c *menagerieClient) close() { _ = c.session.Close() }

// lockClient is go-zookeeper's own lock on a plain connection.
type lockClient struct {
	*plainConn
	lock *zk.Lock
}

func openLock(ctx context.Context, at site) (client, error) {
	c, err := dialPlain(ctx, at)
	if err != nil {
		return nil, err
	}
	_, root := splitServers(at.servers)
	return &lockClient{plainConn: c, lock: zk.NewLock(c.conn, root+at.path, at.secured.acl())}, nil
}

func (c *lockClient) acquire(context.Context) error { return c.lock.Lock() }

func (c *lockClient) release() error { return c.lock.Unlock() }

// floorClient does the two writes that no lock on ZooKeeper can do without, the creation
// and the deletion of an ephemeral sequential node, and waits for nobody.
type floorClient struct {
	*plainConn
	prefix string
	acl    []zk.ACL
	node   string
}

func openFloor(ctx context.Context, at site) (client, error) {
	c, err := dialPlain(ctx, at)
	if err != nil {
		return nil, err
	}
	_, root := splitServers(at.servers)
	return &floorClient{plainConn: c, prefix: root + at.path + "/floor-", acl: at.secured.acl()}, nil
}

func (c *floorClient) acquire(context.Context) (err error) {
	c.node, err = c.conn.Create(c.prefix, nil, zk.FlagEphemeral|zk.FlagSequence, c.acl)
	return err
}

func (c *floorClient) release() error { return c.conn.Delete(c.node, -1) }

// plainConn is a connection of the unmodified client library.
type plainConn struct {
	conn   *zk.Conn
	events <-chan zk.Event
	stop   func() bool // ends the watch over the opening context
	once   sync.Once
}

// dialPlain returns when there is a session. The end of ctx closes the connection, also
// later: the library's calls know no other way to be interrupted.
func dialPlain(ctx context.Context, at site) (*plainConn, error) {
	servers, _ := splitServers(at.servers)
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return at.dial(ctx, network, address)
	}
	conn, events, err := zk.Connect(servers, at.timeout, zk.WithDialer(dial), zk.WithLogger(silent{}), zk.WithLogInfo(false))
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
				return nil, fmt.Errorf("bench: the connection to %s was closed", at.servers)
			}
			if e.State == zk.StateHasSession {
				if err := c.present(at.secured.Auth); err != nil {
					c.stop = func() bool { return true }
					c.close()
					return nil, err
				}
				c.stop = context.AfterFunc(ctx, c.shut)
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
