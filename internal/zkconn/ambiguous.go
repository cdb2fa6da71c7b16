package zkconn

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"
)

// ambiguousCreates are nodes that a request of an old connection may yet make.
//
// Such a request waits in the queue of the server that took it. As long as the session is with another
// server, the leader refuses it. But if the session comes back to the first server before the request is
// looked at, the request is applied: after somebody has looked for its node in vain. (Seen on real
// servers: one in some thousand grants when connections were lost all the time.) So the nodes are looked
// for again after every reconnect, for as long as the session could have been moved between servers.
// Each look begins with a sync, which stands behind whatever is left in the queue of that server.
type ambiguousCreates struct {
	mu      sync.Mutex
	until   map[ambiguousCreate]time.Time
	looking bool // a goroutine looks for them
	again   bool // there is a new connection since its last look began, so it must look again
}

type ambiguousCreate struct {
	dir, prefix string
	first       string // see Orphan
}

// AmbiguousCreate says that a request of unknown outcome may yet make a node in dir that nobody wants
// any more, and whose name begins with prefix. The caller has looked for it already, on the connection
// number looked ([Epoch.Connection]). If there is another connection by now, the epoch looks at once.
func (e *Epoch) AmbiguousCreate(dir, prefix string, looked int64) {
	e.AmbiguousPair(dir, prefix, "", looked)
}

// AmbiguousPair is AmbiguousCreate for a request that also makes a persistent node, first, which is then removed first.
func (e *Epoch) AmbiguousPair(dir, prefix, first string, looked int64) {
	a := &e.ambiguous
	a.mu.Lock()
	a.forget()
	a.until[ambiguousCreate{dir, prefix, first}] = time.Now().Add(2 * e.Timeout())
	a.mu.Unlock()
	if e.Connection() != looked {
		e.lookAgain()
	}
}

// forget drops those that are too old: they cannot be made any more. mu is held.
func (a *ambiguousCreates) forget() {
	maps.DeleteFunc(a.until, func(_ ambiguousCreate, until time.Time) bool { return time.Now().After(until) })
}

// inDirs returns them by directory.
func (a *ambiguousCreates) inDirs() map[string][]ambiguousCreate {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget()
	dirs := make(map[string][]ambiguousCreate)
	for x := range a.until {
		dirs[x.dir] = append(dirs[x.dir], x)
	}
	return dirs
}

// lookAgain is called when there is a new connection. However many connections come, one
// goroutine looks, and only while there is something to look for. If each connection
// began a look, those that do not live long enough for one would pile looks up.
func (e *Epoch) lookAgain() {
	a := &e.ambiguous
	a.mu.Lock()
	defer a.mu.Unlock()
	a.again = len(a.until) > 0
	if !a.again || a.looking {
		return
	}
	a.looking = true
	e.Go(func() {
		for a.next() && e.Cause() == nil {
			e.lookOnce()
		}
	})
}

// next reports whether there has been a connection since the last look began. If not, the goroutine ends.
func (a *ambiguousCreates) next() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looking, a.again = a.again, false
	return a.looking
}

// lookOnce gives the reaper each node that is there.
func (e *Epoch) lookOnce() {
	for dir := range e.ambiguous.inDirs() {
		names, err := e.SyncedChildren(context.Background(), dir) // bounded by the epoch
		if err != nil {
			continue // the directory is gone, and the nodes with it; or there will be another connection
		}
		for _, x := range e.ambiguous.inDirs()[dir] {
			for _, n := range names {
				if strings.HasPrefix(n, x.prefix) {
					e.Reap(Orphan{Dir: dir, Node: dir + "/" + n, First: x.first})
				}
			}
		}
	}
}
