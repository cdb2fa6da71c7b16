package record

import (
	"sync"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Closer is the part of a session that tells when its user closes it.
type Closer interface {
	// Spawn runs f in a goroutine for which the closing waits, or reports false once that has begun.
	Spawn(f func()) bool
	// Closed is closed then.
	Closed() <-chan struct{}
}

// NodeAtClose removes a node when the session is closed, unless forget is called before. It is for external connections, whose
// ZooKeeper session lives on, and the node with it; on any other connection the node goes with the session.
func NodeAtClose(s Closer, e *zkconn.Epoch, dir, node string) (forget func()) {
	forgotten := make(chan struct{})
	AtClose(s, e, forgotten, func() { e.Reap(zkconn.Orphan{Dir: dir, Node: node}) })
	return sync.OnceFunc(func() { close(forgotten) })
}

// AtClose calls remove when the session is closed, unless forgotten is closed before. It is for external connections only, like NodeAtClose.
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
