package zkconn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// doubts are nodes that a request of an old connection may yet make.
//
// Such a request waits in the queue of the server that took it. As long as the session is with
// another server the leader refuses it; but if the session comes back to the first one before
// it is looked at, it is applied, after somebody has looked for its node in vain. (Seen on real
// servers: one in some thousand grants when connections were lost all the time.) So they are
// looked for again after every reconnect, on which a sync stands behind whatever is left in the
// queue of that server, for as long as the session could have been moved about.
type doubts struct {
	mu             sync.Mutex
	looking, again bool
	listed         map[doubt]time.Time // until when
}

type doubt struct{ dir, prefix string }

// Doubt says that a request of unknown outcome may yet make a node in dir whose name begins with
// prefix, which nobody wants any more. It has been looked for on the connection of that number
// already ([Epoch.Connection]).
func (e *Epoch) Doubt(dir, prefix string, looked int64) {
	e.doubt(dir, prefix)
	if e.connection() != looked {
		e.lookAgain()
	}
}

// Connection numbers the connection that stands; 0 for none.
func (e *Epoch) Connection() int64 { return e.connection() }

func (e *Epoch) doubt(dir, prefix string) {
	e.doubts.mu.Lock()
	defer e.doubts.mu.Unlock()
	if e.doubts.listed == nil {
		e.doubts.listed = make(map[doubt]time.Time)
	}
	for x, until := range e.doubts.listed {
		if time.Now().After(until) {
			delete(e.doubts.listed, x)
		}
	}
	e.doubts.listed[doubt{dir, prefix}] = time.Now().Add(2 * e.Timeout())
}

// current returns the prefixes in doubt for each directory.
func (d *doubts) current() map[string][]string {
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
	e.doubts.mu.Lock()
	e.doubts.again = true
	begin := !e.doubts.looking && len(e.doubts.listed) > 0 && e.begin()
	if begin {
		e.doubts.looking = true
	}
	e.doubts.mu.Unlock()
	if !begin {
		return
	}
	go func() {
		defer e.calls.Done()
		for {
			e.doubts.mu.Lock()
			if !e.doubts.again || e.Cause() != nil {
				e.doubts.looking = false
				e.doubts.mu.Unlock()
				return
			}
			e.doubts.again = false
			e.doubts.mu.Unlock()
			e.lookOnce()
		}
	}()
}

func (e *Epoch) lookOnce() {
	for dir := range e.doubts.current() {
		names, err := e.SyncedChildren(context.Background(), dir) // bounded by the epoch
		if err != nil {
			continue // gone with its directory, or there is another connection to come
		}
		for _, prefix := range e.doubts.current()[dir] {
			for _, n := range names {
				if strings.HasPrefix(n, prefix) {
					e.Reap(Litter{Dir: dir, Node: dir + "/" + n})
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
