package zkconn

import (
	"context"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/jute"
)

// Epoch is one ZooKeeper session, from its first handshake until its end, with a client connection of its
// own: requests go over its present connection. All methods may be called by many goroutines at once.
type Epoch struct {
	session
	ambiguous ambiguousCreates

	// telling is held while wire changes and until the client knows of that. Without it the client could hear
	// of two changes in the wrong order. It is locked before mu and before the client's mu.
	telling sync.Mutex

	// These are guarded by mu.
	dialled *wire         // the newest; it is in its handshake, in use, or closed
	wire    *wire         // in use
	serial  int64         // number of the newest connection, from 1
	linked  chan struct{} // closed while there is a connection past its handshake
}

func newEpoch(s *shared, number int64) *Epoch {
	e := &Epoch{linked: make(chan struct{})}
	e.shared, e.number = s, number
	e.over, e.told, e.hooks = make(chan struct{}), make(chan struct{}), make(map[*LossHook]struct{})
	e.alive, e.dead = context.WithCancel(context.Background())
	e.sendBuffer.settled = make(chan struct{})
	e.leaseClock.wanted = make(chan struct{}, 1)
	return e
}

// Await waits for a connection. It returns nil at once if there is one.
// Otherwise it blocks until there is one, ctx ends, or the epoch is over.
func (e *Epoch) Await(ctx context.Context) error {
	linked, w := e.present()
	if w != nil && w.ending() {
		// It is being taken out of use. That takes moments; but if the caller keeps it from that, the wait ends by itself.
		brief, cancel := context.WithTimeout(ctx, unlinkWithin)
		select {
		case <-w.unlinked:
		case <-brief.Done():
		case <-e.over:
		}
		cancel()
		linked, _ = e.present()
	}
	if closed(e.over) {
		return ErrOver
	}
	select {
	case <-linked:
		return nil
	case <-ctx.Done():
		errs.Failed(ctx, 0, e.LastError())
		return ctx.Err()
	case <-e.over:
		return ErrOver
	}
}

const unlinkWithin = 5 * time.Millisecond

func (e *Epoch) present() (linked chan struct{}, w *wire) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.linked, e.wire
}

// Linked reports whether there is a connection now.
func (e *Epoch) Linked() bool { return e.current() != nil }

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
	_, w := e.present()
	return w
}

// Silence is for how long the present connection has owed an answer; 0 if it owes none, or there is no connection.
func (e *Epoch) Silence() time.Duration {
	if w := e.current(); w != nil {
		return w.silence()
	}
	return 0
}

// Identity returns the entry of an access control list that gives PermWrite to this client alone. The first
// call on a connection presents the identity; known says that the server has confirmed it on this connection.
// Once it was withdrawn, and without a connection, ok is false.
func (e *Epoch) Identity() (write zk.ACL, ok, known bool) {
	w := e.current()
	if w == nil {
		return zk.ACL{}, false, false
	}
	return e.identity.show(&w.identity, func() {
		frame := jute.AppendFrame(nil, authRequest(e.identity.cred))
		w.noteAuth(frame)
		if !e.narrow.Load() && w.take() {
			w.putWithin(frame)
			return
		}
		// The caller must not wait for the writes of others. An entry may be sent before the credential that it names.
		e.Go(func() { _, _ = w.put(frame) })
	})
}

// WithdrawIdentity makes the client present no identity any more. If the identity was presented on the present
// connection, that connection is cut, since a server cannot forget credentials: WithdrawIdentity reports that.
func (e *Epoch) WithdrawIdentity() (cut bool) {
	e.identity.withdraw()
	w := e.current()
	if cut = w != nil && e.identity.known(&w.identity); cut {
		w.fail(errWithdrawn)
	}
	return cut
}

// KeepIdentityOut withdraws the identity if the list, with which a user makes a node, would take it in.
func (e *Epoch) KeepIdentityOut(acl []zk.ACL) {
	if takesIdentity(acl) {
		e.WithdrawIdentity()
	}
}

// Conn is the client library's connection object. It ends with the epoch. Conn does not wait for the network: the
// first call has the library ask whether "/" exists, and waits only until the library is about to send that.
func (e *Epoch) Conn() *zk.Conn {
	// A goroutine that waits for something to send would take the next request into the small buffer. In all other
	// cases the buffer is large before the library takes a request.
	if e.sendBuffer.want() {
		e.Go(func() { _, _, _ = e.conn.Exists("/") }) // ends with the connection object at the latest
		<-e.sendBuffer.settled
	}
	return e.conn
}
