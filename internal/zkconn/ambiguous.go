package zkconn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
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
	mu             sync.Mutex
	looking, again bool
	listed         map[ambiguousCreate]time.Time // until when
}

type ambiguousCreate struct{ dir, prefix string }

// AmbiguousCreate says that a request of unknown outcome may yet make a node in dir whose name begins with
// prefix, which nobody wants any more. It has been looked for on the connection of that number
// already ([Epoch.Connection]).
func (e *Epoch) AmbiguousCreate(dir, prefix string, looked int64) {
	e.ambiguousCreate(dir, prefix)
	if e.connection() != looked {
		e.lookAgain()
	}
}

// Connection numbers the connection that stands; 0 for none.
func (e *Epoch) Connection() int64 { return e.connection() }

func (e *Epoch) ambiguousCreate(dir, prefix string) {
	e.ambiguous.mu.Lock()
	defer e.ambiguous.mu.Unlock()
	if e.ambiguous.listed == nil {
		e.ambiguous.listed = make(map[ambiguousCreate]time.Time)
	}
	for x, until := range e.ambiguous.listed {
		if time.Now().After(until) {
			delete(e.ambiguous.listed, x)
		}
	}
	e.ambiguous.listed[ambiguousCreate{dir, prefix}] = time.Now().Add(2 * e.Timeout())
}

// current returns the prefixes of ambiguous creates for each directory.
func (d *ambiguousCreates) current() map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	dirs := make(map[string][]string)
	for x, until := range d.listed {
		if time.Now().After(until) {
			delete(d.listed, x)
			continue
		}
		dirs[x.dir] = append(dirs[x.dir], x.prefix)
	}
	return dirs
}

// lookAgain is called when there is a new connection. One goroutine looks, however many
// connections come: those that do not live long enough for a look must not get more to do each.
func (e *Epoch) lookAgain() {
	e.ambiguous.mu.Lock()
	e.ambiguous.again = true
	begin := !e.ambiguous.looking && len(e.ambiguous.listed) > 0 && e.begin()
	if begin {
		e.ambiguous.looking = true
	}
	e.ambiguous.mu.Unlock()
	if !begin {
		return
	}
	go func() {
		defer e.calls.Done()
		for {
			e.ambiguous.mu.Lock()
			if !e.ambiguous.again || e.Cause() != nil {
				e.ambiguous.looking = false
				e.ambiguous.mu.Unlock()
				return
			}
			e.ambiguous.again = false
			e.ambiguous.mu.Unlock()
			e.lookOnce()
		}
	}()
}

func (e *Epoch) lookOnce() {
	for dir := range e.ambiguous.current() {
		names, err := e.SyncedChildren(context.Background(), dir) // bounded by the epoch
		if err != nil {
			continue // gone with its directory, or there is another connection to come
		}
		for _, prefix := range e.ambiguous.current()[dir] {
			for _, n := range names {
				if strings.HasPrefix(n, prefix) {
					e.Reap(Orphan{Dir: dir, Node: dir + "/" + n})
				}
			}
		}
	}
}

// SyncedChildren lists the children of path as the leader of the servers knew them at some
// instant of the call. Both the sync and the listing are answered on one connection: the next one
// may be to a server that was never synced.
func (e *Epoch) SyncedChildren(ctx context.Context, path string) ([]string, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		if err := e.Await(ctx); err != nil {
			return nil, err
		}
		at := e.connection()
		if err := e.Sync(ctx, path); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		names, _, err := e.Children(ctx, path)
		if e.connection() == at || err != nil && !errors.Is(err, zk.ErrNoNode) {
			return names, err
		}
		// Where connections do not live for two requests, asking at once makes it no better.
		if err := e.pause(ctx, pause); err != nil {
			return nil, err
		}
	}
}
