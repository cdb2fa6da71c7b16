package record

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Listener collects the events of nodes, one of each node, in the order of the events.
type Listener struct {
	e       *zkconn.Epoch
	watches []*zkconn.Watch
	events  chan struct{} // has a value when there may be events

	mu   sync.Mutex
	told []event
}

// event is what happened to a node.
type event struct {
	path string
	what zkconn.Event
}

// Hear begins to listen; one request sets all watches. Stop must be called.
func Hear(e *zkconn.Epoch, paths ...string) *Listener {
	l := &Listener{e: e, events: make(chan struct{}, 1)}
	l.Add(paths...)
	return l
}

// Add listens to further nodes. A later request is answered only after the servers watch them.
func (l *Listener) Add(paths ...string) {
	l.watches = append(l.watches, l.e.WatchAll(paths, l.Tell, nil)...)
}

// Tell adds an event for Next, from any goroutine.
func (l *Listener) Tell(path string, what zkconn.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, event{path, what})
	select {
	case l.events <- struct{}{}:
	default:
	}
}

// Next returns the next event. The path is empty if there is none for quiet.
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
			return "", 0, context.Cause(ctx)
		case <-l.e.Over():
			return "", 0, zkconn.ErrOver
		}
	}
}

// Stop ends the watches.
func (l *Listener) Stop() {
	for _, w := range l.watches {
		w.Stop()
	}
}

// ErrGone means that a node is gone, and no event has told of it.
var ErrGone = errors.New("gone")

// UntilGone waits until there is no node at path. A node that was made after the transaction since is another one; 0 if that is not
// known. check, if not nil, is called when there was no event for a session
// timeout. Its error ends the wait; ErrGone ends it without an error.
//
// Then it also asks whether the node exists: some servers (3.8 with its later security fixes) do not report the end of a node to
// a session that may not read it, and the wait would never end.
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
		since = max(since, st.Czxid)
		return nil
	}
	quiet := e.Timeout()
	err := Insist(ctx, e, func() error {
		l := Hear(e, path)
		defer l.Stop()
		for {
			heard, what, err := l.Next(ctx, quiet)
			if quiet = e.Timeout(); err == nil && heard == "" {
				err = look()
			}
			switch {
			case err != nil:
				return err
			case what == zkconn.Disconnected, what == zkconn.Changed:
				if since != 0 { // it may be another node now: look, as soon as that is watched
					quiet = 0
				}
				return ErrAgain
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

// LookPause is the first pause between the departure of a sentinel and a look at the others.
// Usually the end comes right behind it.
const LookPause = 10 * time.Millisecond

// Sentinel is for a wait whose end the last party to leave should announce, but might not, because it may die. The waiter
// also watches one living party, the sentinel, and looks again when that party has left. It need not know the
// others: if the wait is over, the sentinel has left, too. The zero Sentinel is ready to use, for one wait.
type Sentinel struct {
	// Spread is the time over which the looks of all waiters are spread at random. It is for looks after which the first waiter does something
	// that the others need not do. 0 is for looks that are cheap.
	Spread time.Duration

	look time.Duration
	pace node.Pace
}

// Pick chooses one of the nodes in dir, "" if there is none.
func Pick(dir string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return dir + "/" + names[rand.N(len(names))]
}

// Wait returns the first event of one of ends. path is "" when the others should be looked at instead: some time after the
// sentinel has left, or when there was no event for quiet. sentinel may be "".
func (s *Sentinel) Wait(ctx context.Context, e *zkconn.Epoch, ends []string, sentinel string, quiet time.Duration) (path string, event zkconn.Event, err error) {
	if err := e.Await(ctx); err != nil {
		return "", 0, err
	}
	began := time.Now()
	path, event, err = s.listen(ctx, e, ends, sentinel, quiet-s.random())
	// Events that come again and again must not make the caller look in a spin.
	if idle := event != zkconn.Deleted && event != zkconn.Changed; idle && err == nil && time.Since(began) < LookPause {
		err = s.pace.Rest(ctx, e)
	}
	return path, event, err
}

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
		s.look = min(max(2*s.look, LookPause), max(e.Timeout()/3, LookPause))
		quiet = s.look + s.random()
	}
}

func (s *Sentinel) random() time.Duration { return rand.N(max(s.Spread, 1)) }
