package zkconn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// Epoch is one ZooKeeper session, from its first handshake until its end, with a
// client connection of its own. All methods may be used by many goroutines.
type Epoch struct {
	client    *Client
	cfg       *Config
	number    int64
	conn      *zk.Conn
	events    <-chan zk.Event
	hosts     *hosts
	hub       hub
	clock     leaseClock
	id        atomic.Int64
	timeout   atomic.Int64 // a time.Duration
	seen      atomic.Int64 // the greatest zxid that a server has told
	ambiguous ambiguousCreates
	xids      atomic.Uint32 // of our own requests, over all connections: see wire.expect

	over chan struct{} // closed when the session ended or cannot be proved alive
	told chan struct{} // closed when everybody who asked has been told of that

	alive context.Context // ends when the client library must not dial again; under mu
	dead  context.CancelFunc

	wanted chan struct{} // somebody wants leader proof: see RequireLeaderProof

	// telling is held while wire changes and until the client has been told, or two
	// changes could be told in the wrong order. It comes before mu and the client's mu.
	telling sync.Mutex

	mu      sync.Mutex
	cause   error // set before over is closed
	passwd  []byte
	dialled *wire         // the newest; it is in its handshake, in use or closed
	wire    *wire         // in use; of an external connection, it is only an address
	serial  int64         // counts connections
	linked  chan struct{} // closed while there is a connection past its handshake
	onLost  map[*LossHook]struct{}
	gone    bool // the servers themselves said that the session is
}

func (c *Client) newEpoch(number int64) *Epoch {
	e := &Epoch{
		client: c, cfg: &c.cfg, number: number,
		over: make(chan struct{}), told: make(chan struct{}), linked: make(chan struct{}),
		onLost: make(map[*LossHook]struct{}),
		wanted: make(chan struct{}, 1),
	}
	e.ambiguous.until = make(map[ambiguousCreate]time.Time)
	e.alive, e.dead = context.WithCancel(context.Background())
	e.clock.fire = func() { e.lose(errSilent) }
	return e
}

// Number counts the epochs of a client from 1.
func (e *Epoch) Number() int64 { return e.number }

// ID is the session id.
func (e *Epoch) ID() int64 { return e.id.Load() }

// Timeout is the session timeout that the servers granted.
func (e *Epoch) Timeout() time.Duration { return time.Duration(e.timeout.Load()) }

// Conn is the client's own connection object. It dies with the epoch.
func (e *Epoch) Conn() *zk.Conn { return e.conn }

// Over is closed when the session has ended or can no longer be proved alive.
func (e *Epoch) Over() <-chan struct{} { return e.over }

// Cause says why the epoch is over; nil while it is not.
func (e *Epoch) Cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// Valid reports whether the session can be proved alive at this instant.
func (e *Epoch) Valid() bool { return e.clock.valid() }

// Await waits for a connection: it returns nil at once while there is one, and
// otherwise blocks until there is, ctx ends, or the epoch is over.
func (e *Epoch) Await(ctx context.Context) error {
	e.mu.Lock()
	linked := e.linked
	e.mu.Unlock()
	if closed(e.over) {
		return ErrOver
	}
	select {
	case <-linked:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.over:
		return ErrOver
	}
}

// Linked reports whether there is a connection now.
func (e *Epoch) Linked() bool { return e.Connection() != 0 }

// Connection numbers the connection that stands, 0 for none.
func (e *Epoch) Connection() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wire == nil {
		return 0
	}
	return e.serial
}

// current is the wire of the connection that stands; nil for none.
func (e *Epoch) current() *wire {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wire
}
