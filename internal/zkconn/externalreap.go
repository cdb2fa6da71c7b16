package zkconn

import (
	"context"
	"reflect"
	"slices"

	"github.com/go-zookeeper/zk"
)

// The reaper of an external connection is bound to that connection and to nothing else. The
// session, and every node in it, lives as long as the connection's owner wants. So without it, a
// node that a client leaves to the reaper when it is closed during an outage would stay for ever: a
// lock that nobody holds. The reaper's goroutine ends when the servers have confirmed that the node
// is gone, or when the owner closes the connection: that ends the session, and the node with it.

// closedChannel returns the channel that the client library closes when its owner calls Close; nil if
// it has none. There is no other way to know: a closed client answers with the same error, in the
// same state, as one between two connections. The field is not written after its connection was made.
func closedChannel(conn *zk.Conn) <-chan struct{} {
	f := reflect.ValueOf(conn).Elem().FieldByName("shouldQuit")
	if !f.IsValid() || f.Type() != reflect.TypeFor[chan struct{}]() {
		return nil
	}
	return *(*chan struct{})(f.Addr().UnsafePointer())
}

// reapExternal prepares r for an external connection. There the orphan is removed from the
// connection's session, whichever epoch that is in, until it is gone or the connection was closed.
// The client library never gives up a request that was lost on a connection that lives. So the node
// is looked for while its request is pending, too: what the library sends is answered in order.
func (e *Epoch) reapExternal(r *reaping) {
	var late []<-chan struct{}
	r.over, r.look = e.client.abandon, e.Timeout()
	r.list = func(dir string) ([]string, error) {
		if _, err := answered(e, syncRequest(dir), &late); err != nil {
			return nil, err
		}
		l, err := answered(e, childrenRequest(dir), &late)
		return l.Names, err
	}
	r.remove = func(node string) error {
		_, err := answered(e, removeRequest(node, r.If), &late)
		return err
	}
}

// answered runs a request and waits for it. After a session timeout it stops waiting: the
// request or its answer has been lost on a connection that lives. The next request may be
// made beside it, because no name is used twice. While mostLate requests are on their way
// it waits without a limit: a client library that hangs must not collect goroutines.
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

// mostLate bounds the requests that were left without an answer; with the newest there are sixteen.
const mostLate = 15
