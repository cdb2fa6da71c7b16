package zkconn

import (
	"maps"
	"sync"
	"time"
)

// ambiguousCreates are nodes that a request of an old connection may yet make.
//
// Such a request waits in the queue of the server that took it. As long as the session is with another
// server, the leader refuses it. But if the session comes back to the first server before the request is
// looked at, the request is applied: after a look for its node was in vain. (Seen on real
// servers: one in some thousand grants when connections were lost all the time.) So the nodes are looked
// for again after every reconnect, for as long as the session could have been moved between servers.
// Each look begins with a sync, which stands behind whatever is left in the queue of that server.
type ambiguousCreates struct {
	mu      sync.Mutex
	until   map[ambiguousCreate]time.Time
	many    int  // at so many add forgets those that are too old
	looking bool // a goroutine looks for them
	again   bool // there is a new connection since its last look began, so it must look again
}

type ambiguousCreate struct {
	dir, prefix string
	first       string // see Orphan
}

// add adds a node that may be made until an instant.
func (a *ambiguousCreates) add(x ambiguousCreate, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = make(map[ambiguousCreate]time.Time)
	}
	if a.until[x] = until; len(a.until) > a.many {
		a.forget()
		a.many = max(64, 2*len(a.until)) // so a look through all of them is rare
	}
}

// forget forgets those that are too old: they cannot be made any more. mu is held.
func (a *ambiguousCreates) forget() {
	maps.DeleteFunc(a.until, func(_ ambiguousCreate, until time.Time) bool { return time.Now().After(until) })
}

// reconnected is called when there is a new connection. It reports whether a goroutine must look. However many
// connections come, one goroutine looks, and only while there is something to look for. If each connection
// began a look, those that do not live long enough for one would pile looks up.
func (a *ambiguousCreates) reconnected() (look bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.again = len(a.until) > 0
	look = a.again && !a.looking
	a.looking = a.looking || look
	return look
}

// next reports whether there has been a connection since the last look began. If not, the goroutine ends.
func (a *ambiguousCreates) next() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looking, a.again = a.again, false
	return a.looking
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
