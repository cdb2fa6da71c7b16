package record

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Listener collects the events of the nodes that it watches, in the order of
// the events. Each watch reports one event.
type Listener struct {
	e       *zkconn.Epoch
	watches []*zkconn.Watch
	events  chan struct{} // has a value when there may be events

	mu   sync.Mutex
	told []event // not yet returned by Next
}

// event is what happened to a node.
type event struct {
	path string
	what zkconn.Event
}

// Hear begins to listen. One request sets all watches. The caller must call Stop.
func Hear(e *zkconn.Epoch, paths ...string) *Listener {
	l := &Listener{e: e, events: make(chan struct{}, 1)}
	l.Add(paths...)
	return l
}

// Add listens to further nodes. Requests are answered in order, so the servers watch these
// nodes before they answer a later request.
func (l *Listener) Add(paths ...string) {
	l.watches = append(l.watches, l.e.WatchAll(paths, l.Tell, nil)...)
}

// Read is Add for one node, which it also reads, with the same request. The node may be missing: then the next event says so, as
// with Add, and the error is zk.ErrNoNode. After any other error it may not listen to the node.
func (l *Listener) Read(ctx context.Context, path string) (zkconn.Content, error) {
	w, now, err := l.e.WatchData(ctx, path, func(what zkconn.Event) { l.Tell(path, what) })
	switch {
	case err == nil:
		l.watches = append(l.watches, w)
	case errors.Is(err, zk.ErrNoNode):
		l.Tell(path, zkconn.NotFound)
	case errors.Is(err, zk.ErrNoAuth): // to listen needs no permission
		l.Add(path)
	}
	return now, err
}

// List lists the children of a directory, and listens to their next change.
func (l *Listener) List(ctx context.Context, dir string) (list zkconn.Listing, err error) {
	var w *zkconn.Watch
	r := node.Insist(ctx, l.e)
	for r.Next() {
		w, list, r.Err = l.e.WatchChildren(ctx, dir, func(what zkconn.Event) { l.Tell(dir, what) })
	}
	if r.Err == nil {
		l.watches = append(l.watches, w)
	}
	return list, r.Err
}

// Names listens to the next change of the children of a directory, and does not list them. The servers watch it before they
// answer a later request.
func (l *Listener) Names(dir string) {
	l.watches = append(l.watches, l.e.WatchNames(dir, l.Tell))
}

// Tell adds an event for Next. Any goroutine may call it.
func (l *Listener) Tell(path string, what zkconn.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, event{path, what})
	select {
	case l.events <- struct{}{}:
	default: // Next looks at told until it is empty, so one value is enough for many events
	}
}

// Next returns the next event. The path is empty if there was none for the time quiet.
func (l *Listener) Next(ctx context.Context, quiet time.Duration) (path string, what zkconn.Event, err error) {
	t := time.NewTimer(max(quiet, time.Millisecond))
	defer t.Stop()
	for {
		l.mu.Lock()
		if len(l.told) > 0 {
			first := l.told[0]
			l.told = l.told[1:]
			l.mu.Unlock()
			return first.path, first.what, nil
		}
		l.mu.Unlock()
		select {
		case <-l.events:
		case <-t.C:
			return "", 0, nil
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-l.e.Over():
			return "", 0, zkconn.ErrOver
		}
	}
}

// Stop ends the watches, and forgets their events. The caller may begin again.
func (l *Listener) Stop() {
	for _, w := range l.watches {
		w.Stop()
	}
	l.watches = nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = nil
}

// ErrGone means that a read, not an event, has shown that a node is gone.
var ErrGone = errors.New("gone")

// UntilGone waits until the node at path is gone. A node that was created after the transaction since is a
// successor, so the awaited node is gone; since is 0 if unknown. UntilGone calls check, if it is not nil, when
// there was no event for a session timeout, when the node was written to, and after a lost connection. An error of
// check ends the wait with that error, ErrGone without one.
//
// Then it also asks whether the node exists: some servers (3.8 with its later security fixes) do not report the
// end of a node to a session that may not read it.
func UntilGone(ctx context.Context, e *zkconn.Epoch, path string, since int64, check func() error) error {
	look := func() error {
		if check != nil {
			if err := check(); err != nil {
				return err
			}
		}
		st, there, err := e.Exists(ctx, path)
		switch {
		case err != nil:
			return err
		case !there, since != 0 && st.Czxid > since:
			return ErrGone
		}
		// Later looks compare with the node that was seen now: any newer one is a successor.
		since = max(since, st.Czxid)
		return nil
	}
	again := false
	err := Insist(ctx, e, func() error {
		l := Hear(e)
		defer l.Stop()
		missed := again
		if since == 0 && check == nil { // only its end matters, and a watch reports that also if it came before
			l.Add(path)
			missed = false
		} else if now, err := l.Read(ctx, path); errors.Is(err, zk.ErrNoNode) {
			return ErrGone
		} else if err == nil { // no event reports that it was written to before, or that it is a successor
			missed = missed || now.Stat.Version > 0 || since != 0 && now.Stat.Czxid > since
		} else if !errors.Is(err, zk.ErrNoAuth) { // without the right to read it listens all the same
			return err
		}
		if missed {
			if err := look(); err != nil {
				return err
			}
		}
		for again = true; ; {
			heard, what, err := l.Next(ctx, e.Timeout())
			if err == nil && heard == "" {
				err = look()
			}
			switch {
			case err != nil:
				return err
			case what == zkconn.Disconnected, what == zkconn.Changed:
				return node.ErrAgain
			case heard != "":
				return nil
			}
		}
	})
	if errors.Is(err, ErrGone) {
		err = nil
	}
	return err
}

// LookPause is the first pause between the departure of a sentinel and a look at the state. Usually the event that
// ends the wait follows that departure at once, and no look is needed.
const LookPause = 10 * time.Millisecond

// Sentinel is for a wait that the last party to leave should end, but might not, because it may die. Besides the node
// whose deletion ends the wait, the waiter watches the node of one living party, the sentinel. When the sentinel has
// left, the waiter looks at the state again. It need not know the other parties: if the wait is over, the sentinel
// has left, too. The zero Sentinel is ready to use, for one wait, with any number of calls of its method Wait.
type Sentinel struct {
	// Spread is the time over which the looks of all waiters are spread at random. It is for a look after which the
	// first waiter does something that the others then need not do. 0 is for cheap looks.
	Spread time.Duration

	looks *backoff.ExponentialBackOff // the pauses before looks
	idle  bool                        // an event came that says nothing about the end
	pace  node.Pace                   // for such events in quick succession
}

// Pick returns the path of a random one of the nodes with these names in dir, "" if there is none.
func Pick(dir string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return dir + "/" + names[rand.N(len(names))]
}

// Wait returns the first event of one of the nodes ends. It returns an empty path when the caller should look at the
// state instead: some time after the sentinel has left, or when there was no event for the time quiet. sentinel may
// be "". If the connection is lost, the event is zkconn.Disconnected, with the path of any of the watched nodes.
func (s *Sentinel) Wait(ctx context.Context, e *zkconn.Epoch, ends []string, sentinel string, quiet time.Duration) (path string, event zkconn.Event, err error) {
	if err := e.Await(ctx); err != nil {
		return "", 0, err
	}
	began := time.Now()
	path, event, err = s.listen(ctx, e, ends, sentinel, quiet-s.random())
	// Events that come again and again, for example NotFound, must not make the caller look again and again
	// without a pause. The first one may mean that the wait ended before the node was watched.
	if idle := event != zkconn.Deleted && event != zkconn.Changed; idle && err == nil && time.Since(began) < LookPause {
		if s.idle {
			err = s.pace.Rest(ctx, e)
		}
		s.idle = true
	}
	return path, event, err
}

// listen is Wait without the pause against quick successions of events.
func (s *Sentinel) listen(ctx context.Context, e *zkconn.Epoch, ends []string, sentinel string, quiet time.Duration) (end string, event zkconn.Event, err error) {
	paths := ends
	if sentinel != "" {
		paths = append(ends[:len(ends):len(ends)], sentinel)
	}
	l := Hear(e, paths...)
	defer l.Stop()
	for {
		end, event, err = l.Next(ctx, quiet)
		if err != nil || end == "" || end != sentinel || event == zkconn.Disconnected {
			return end, event, err
		}
		// The sentinel has left. The wait continues for the pause, because the end usually follows at once.
		if s.looks == nil {
			s.looks = zkconn.NewBackOff(LookPause, max(e.Timeout()/3, LookPause))
		}
		quiet = s.looks.NextBackOff() + s.random()
	}
}

func (s *Sentinel) random() time.Duration { return rand.N(max(s.Spread, 1)) }
