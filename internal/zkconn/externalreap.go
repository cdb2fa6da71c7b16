package zkconn

import (
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// The reaper of an external connection is bound to that connection and to nothing else.
// The session, and every node in it, lives as long as the connection's owner wants, so
// what a client that is closed during an outage leaves to the reaper would otherwise
// stay for ever: a lock that nobody holds. Its goroutine ends when the servers have
// confirmed that the node is gone, or when the owner closes the connection: that ends
// the session, and the node with it.

// closedChannel returns the channel that the client library closes when its owner calls
// Close; nil if it has none. There is no other way to know: a closed client answers
// with the same error, in the same state, as one between two connections. The field is
// never written after its connection was made.
func closedChannel(conn *zk.Conn) <-chan struct{} {
	f := reflect.ValueOf(conn).Elem().FieldByName("shouldQuit")
	if !f.IsValid() || f.Type() != reflect.TypeFor[chan struct{}]() {
		return nil
	}
	return *(*chan struct{})(f.Addr().UnsafePointer())
}

// pendingReaps counts what the reaper of an external connection has still to do, and requests of ours that its
// client library has not answered. Unlike a
// sync.WaitGroup it may be added to while somebody waits.
type pendingReaps struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed when n is 0 again; nil while nobody waits for that
}

func (r *pendingReaps) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
}

func (r *pendingReaps) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.n--; r.n == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// finished returns a channel that is closed at an instant when nothing is to be done.
func (r *pendingReaps) finished() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	if r.n > 0 {
		return r.idle
	}
	none := r.idle
	close(none)
	r.idle = nil
	return none
}

// reapExternal has an orphan removed from an external connection's session, whichever epoch
// that is in, until it is gone or the connection was closed. The client library never gives up what was lost on a
// living connection, so the node is looked for while its request is pending, too: what the library sends is answered in order.
func (e *Epoch) reapExternal(r *reaping) {
	e.client.pendingReaps.begin()
	r.over, r.list, r.remove = e.client.abandon, e.listExternal, e.deleteExternal
	r.look = e.Timeout()
	running := make(chan struct{}, attempts)
	r.attempt = func() error { return e.attemptExternal(r, running) }
}

// attemptExternal is one sweep. It is left to itself after a session timeout, when a
// request or an answer has been lost on a living connection; the next attempt may be made beside it,
// because no name is used twice. As many as running has room for are under way at a time: a client library
// that stands still must not collect goroutines.
func (e *Epoch) attemptExternal(r *reaping, running chan struct{}) error {
	select {
	case running <- struct{}{}:
	case <-r.over:
		return nil
	}
	swept := make(chan error, 1)
	once := *r // the node may become known meanwhile
	go func() {
		swept <- once.sweep()
		<-running
	}()
	t := time.NewTimer(e.Timeout())
	defer t.Stop()
	select {
	case err := <-swept:
		return err
	case <-r.over:
		return nil
	case <-t.C:
		return errNoAnswer
	}
}

// attempts is how many of them may be under way.
const attempts = 16

var errNoAnswer = errors.New("no answer in a session timeout")

func (e *Epoch) listExternal(dir string) ([]string, error) {
	conn, err := e.usable()
	if err != nil {
		return nil, err
	}
	if _, err := conn.Sync(dir); err != nil {
		return nil, err
	}
	if conn, err = e.usable(); err != nil {
		return nil, err
	}
	names, _, err := conn.Children(dir)
	return names, err
}

func (e *Epoch) deleteExternal(node string) error {
	conn, err := e.usable()
	if err != nil {
		return err
	}
	return conn.Delete(node, -1)
}
