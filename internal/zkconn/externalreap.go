package zkconn

import (
	"context"
	"reflect"
	"slices"

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

// reapExternal has an orphan removed from an external connection's session, whichever epoch
// that is in, until it is gone or the connection was closed. The client library never gives up what was lost on a
// living connection, so the node is looked for while its request is pending, too: what the library sends is answered in order.
func (e *Epoch) reapExternal(r *reaping) {
	var late []<-chan struct{}
	r.over, r.look = e.client.abandon, e.Timeout()
	r.list = func(dir string) ([]string, error) {
		if _, err := answered(e, syncRequest(dir), &late); err != nil {
			return nil, err
		}
		l, err := answered(e, childrenRequest(dir), &late)
		return l.names, err
	}
	r.remove = func(node string) error {
		_, err := answered(e, deleteRequest(node), &late)
		return err
	}
}

// answered waits for a request. It is left to itself after a session timeout, when it
// or its answer has been lost on a living connection; the next may be made beside it,
// because no name is used twice. While as many as mostLate are on their way it waits for longer: a client library
// that stands still must not collect goroutines.
func answered[T any](e *Epoch, r request[T], late *[]<-chan struct{}) (T, error) {
	c := start(e, r)
	*late = slices.DeleteFunc(*late, closed)
	ctx := context.Background()
	if len(*late) < mostLate {
		limited, cancel := context.WithTimeout(ctx, e.Timeout())
		defer cancel()
		ctx = limited
	}
	*late = append(*late, c.done)
	return c.wait(ctx, e.client.abandon)
}

// mostLate and the last one make sixteen.
const mostLate = 15
