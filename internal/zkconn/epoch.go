package zkconn

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Epoch is one ZooKeeper session, from its first handshake until its end, with a
// client connection of its own. All methods may be called by many goroutines at once.
type Epoch struct {
	client     *Client
	cfg        *Config
	number     int64
	conn       *zk.Conn
	sendBuffer sendBuffer
	events     <-chan zk.Event
	hosts      *hosts
	hub        hub
	clock      leaseClock
	id         atomic.Int64
	timeout    atomic.Int64 // a time.Duration
	seen       atomic.Int64 // the greatest zxid that an answer has told
	ambiguous  ambiguousCreates
	xids       atomic.Uint32 // of our own requests, over all connections: see wire.expect
	compared   atomic.Bool   // see ahead
	narrow     atomic.Bool   // a connection was cut because it did not take a small request at once: see writeLimit

	over chan struct{} // closed when the session has ended or can no longer be proved alive
	told chan struct{} // closed when all hooks of OnLost have returned

	// alive ends when this epoch must have no connection any more: from then on the client library must not dial.
	// It is about connections; whether the session is alive is what clock knows. dead ends it, with mu held.
	alive context.Context // see kill
	dead  context.CancelFunc

	wanted chan struct{} // holds a value when the next heartbeat may be urgent: see wake

	// telling is held while wire changes and until the client has been told of that. Without it two
	// changes could be told in the wrong order. It is locked before mu and before the client's mu.
	telling sync.Mutex

	mu      sync.Mutex
	cause   error // set before over is closed
	passwd  []byte
	dialled *wire         // the newest; it is in its handshake, in use, or closed
	wire    *wire         // in use
	serial  int64         // number of the newest connection, from 1
	linked  chan struct{} // closed while there is a connection past its handshake
	onLost  map[*LossHook]struct{}
	gone    bool // the servers themselves said that the session has ended
}

func (c *Client) newEpoch(number int64) *Epoch {
	e := &Epoch{
		client: c, cfg: &c.cfg, number: number,
		over: make(chan struct{}), told: make(chan struct{}), linked: make(chan struct{}),
		onLost: make(map[*LossHook]struct{}),
		wanted: make(chan struct{}, 1),
	}
	e.sendBuffer.settled = make(chan struct{})
	e.ambiguous.until = make(map[ambiguousCreate]time.Time)
	e.alive, e.dead = context.WithCancel(context.Background())
	e.clock.fire = func() { e.lose(e.silent()) }
	return e
}

// Number counts the epochs of a client from 1.
func (e *Epoch) Number() int64 { return e.number }

// ID is the session id.
func (e *Epoch) ID() int64 { return e.id.Load() }

// Timeout is the session timeout that the servers granted.
func (e *Epoch) Timeout() time.Duration { return time.Duration(e.timeout.Load()) }

// span is Timeout or, before the first connection, the timeout to ask for.
func (e *Epoch) span() time.Duration { return cmp.Or(e.Timeout(), e.cfg.Timeout) }

// Over is closed when the session has ended or can no longer be proved alive.
func (e *Epoch) Over() <-chan struct{} { return e.over }

// Cause says why the epoch is over; nil while it is not.
func (e *Epoch) Cause() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cause
}

// Valid reports whether the session can be proved alive at this instant. It computes that from the clock at
// each call, so it is false from the right instant on, even if the timer that ends the epoch fires late.
func (e *Epoch) Valid() bool { return e.clock.valid() }

// ValidAt is Valid for a caller that has just looked at the clock, which is much of the cost of a local hand-over.
func (e *Epoch) ValidAt(now time.Time) bool { return e.clock.validAt(now) }

// Expires is when the session can no longer be proved alive if no server answers any more; zero if it cannot now.
func (e *Epoch) Expires() time.Time { return e.clock.expires(time.Now()) }

// Heard is when the newest request was sent that the servers have answered; zero before the first answer.
func (e *Epoch) Heard() time.Time { return e.clock.lastHeard() }

// Silence is for how long the present connection has owed an answer; 0 if it owes none, or there is no connection.
func (e *Epoch) Silence() time.Duration {
	if w := e.current(); w != nil {
		return w.silence()
	}
	return 0
}

// Await waits for a connection. It returns nil at once if there is one.
// Otherwise it blocks until there is one, ctx ends, or the epoch is over.
func (e *Epoch) Await(ctx context.Context) error {
	e.mu.Lock()
	linked, w := e.linked, e.wire
	e.mu.Unlock()
	if w != nil && w.ending() {
		e.awaitUnlink(ctx, w)
		e.mu.Lock()
		linked = e.linked
		e.mu.Unlock()
	}
	if closed(e.over) {
		return ErrOver
	}
	select {
	case <-linked:
		return nil
	case <-ctx.Done():
		errs.Failed(ctx, 0, e.client.LastError())
		return context.Cause(ctx)
	case <-e.over:
		return ErrOver
	}
}

// awaitUnlink waits until a connection that has ended is out of use. That takes moments; but if the caller
// keeps it from that, the wait ends by itself.
func (e *Epoch) awaitUnlink(ctx context.Context, w *wire) {
	bound := time.NewTimer(unlinkWithin)
	defer bound.Stop()
	select {
	case <-w.unlinked:
	case <-bound.C:
	case <-ctx.Done():
	case <-e.over:
	}
}

const unlinkWithin = 5 * time.Millisecond

// Linked reports whether there is a connection now.
func (e *Epoch) Linked() bool { return e.Connection() != 0 }

// Connection is the number of the present connection; 0 if there is none.
func (e *Epoch) Connection() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wire == nil {
		return 0
	}
	return e.serial
}

// current is the wire of the present connection; nil if there is none.
func (e *Epoch) current() *wire {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wire
}
