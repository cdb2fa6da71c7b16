package record

import (
	"sync"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Closer is the part of a session that says when its user closes it.
type Closer interface {
	// Spawn runs f in a goroutine, and Close of the session waits for it. After Close has begun,
	// Spawn reports false and does not run f.
	Spawn(f func()) bool
	// Closed is closed when Close of the session begins.
	Closed() <-chan struct{}
}

// NodeAtClose removes an orphan when the session is closed, unless forget is called before. It has an effect only on an
// external connection: there the ZooKeeper session outlives the session of its user, and so does the node. On any
// other connection the node is removed with the ZooKeeper session.
func NodeAtClose(s Closer, e *zkconn.Epoch, o zkconn.Orphan) (forget func()) {
	forgotten := make(chan struct{})
	AtClose(s, e, forgotten, func() { e.Reap(o) })
	return sync.OnceFunc(func() { close(forgotten) })
}

// AtClose calls remove when the session is closed, unless forgotten is closed before. If the session is being closed
// already, AtClose calls remove at once. Like NodeAtClose it does nothing unless the connection is external.
func AtClose(s Closer, e *zkconn.Epoch, forgotten <-chan struct{}, remove func()) {
	if !e.Ordered() && !s.Spawn(func() {
		select {
		case <-s.Closed():
			remove()
		case <-forgotten:
		}
	}) {
		remove()
	}
}
