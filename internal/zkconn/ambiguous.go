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
// Such a request waits in the queue of the server that took it. As long as the session is with
// another server the leader refuses it; but if the session comes back to the first one before
// it is looked at, it is applied, after somebody has looked for its node in vain. (Seen on real
// servers: one in some thousand grants when connections were lost all the time.) So they are
// looked for again after every reconnect, on which a sync stands behind whatever is left in the
// queue of that server, for as long as the session could have been moved about.
type ambiguousCreates struct {
	mu      sync.Mutex
	until   map[ambiguousCreate]time.Time
	looking bool // a goroutine looks for them
	again   bool // and is to look again
}

type ambiguousCreate struct{ dir, prefix string }

// AmbiguousCreate says that a request of unknown outcome may yet make a node in dir whose name begins with
// prefix, which nobody wants any more. It has been looked for on the connection of that number
// already ([Epoch.Connection]).
func (e *Epoch) AmbiguousCreate(dir, prefix string, looked int64) {
	a := &e.ambiguous
	a.mu.Lock()
	a.forget()
	a.until[ambiguousCreate{dir, prefix}] = time.Now().Add(2 * e.Timeout())
	a.mu.Unlock()
	if e.Connection() != looked {
		e.lookAgain()
	}
}

// forget drops those that are too old to be made any more. mu is held.
func (a *ambiguousCreates) forget() {
	maps.DeleteFunc(a.until, func(_ ambiguousCreate, until time.Time) bool { return time.Now().After(until) })
}

// inDirs returns the prefixes for each directory.
func (a *ambiguousCreates) inDirs() map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget()
	dirs := make(map[string][]string)
	for x := range a.until {
		dirs[x.dir] = append(dirs[x.dir], x.prefix)
	}
	return dirs
}

// lookAgain is called when there is a new connection. One goroutine looks, and only while there is something to look
// for, however many connections come: those that do not live long enough for a look must not get more to do each.
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

// next reports whether there has been a connection since the last look; if not, the goroutine ends.
func (a *ambiguousCreates) next() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.looking, a.again = a.again, false
	return a.looking
}

func (e *Epoch) lookOnce() {
	for dir := range e.ambiguous.inDirs() {
		names, err := e.SyncedChildren(context.Background(), dir) // bounded by the epoch
		if err != nil {
			continue // gone with its directory, or there is another connection to come
		}
		for _, prefix := range e.ambiguous.inDirs()[dir] {
			for _, n := range names {
				if strings.HasPrefix(n, prefix) {
					e.Reap(Orphan{Dir: dir, Node: dir + "/" + n})
				}
			}
		}
	}
}
