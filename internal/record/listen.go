package record

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Listen hears of the nodes at paths, each once, in the order in which it happened; one request sets all watches. hear
// returns how long to wait for what is next, 0 to end; an error ends it, too. It gets an empty path when nothing was heard
// for that long, at first for quiet.
func Listen(ctx context.Context, e *zkconn.Epoch, paths []string, quiet time.Duration, hear func(path string, what zkconn.Event) (time.Duration, error)) error {
	told := make(chan event, len(paths))
	for _, w := range e.WatchAll(paths, func(path string, what zkconn.Event) { told <- event{path, what} }, nil) {
		defer w.Stop()
	}
	t := time.NewTimer(max(quiet, time.Millisecond))
	defer t.Stop()
	for {
		var n event
		select {
		case n = <-told:
		case <-t.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.Over():
			return zkconn.ErrOver
		}
		quiet, err := hear(n.path, n.what)
		if quiet == 0 || err != nil {
			return err
		}
		t.Reset(max(quiet, time.Millisecond))
	}
}

// event is what happened to a node.
type event struct {
	path string
	what zkconn.Event
}

// ErrGone means that a node is not there any more, which nobody has told.
var ErrGone = errors.New("gone")

// UntilGone waits until there is no node at path. check, if not nil, is called when nothing was heard for a session
// timeout; an error of it ends the wait, without one if it is ErrGone.
//
// Then it also asks whether the node is there: a server that tells nobody of the end of a node that he may not read
// (3.8 with its later security fixes) would leave us asleep for ever.
func UntilGone(ctx context.Context, e *zkconn.Epoch, path string, check func() error) error {
	seen := int64(0) // the czxid of the node
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
		case !there, seen != 0 && st.Czxid != seen:
			return ErrGone
		}
		seen = st.Czxid
		return nil
	}
	err := Insist(ctx, e, func() error {
		return Listen(ctx, e, []string{path}, e.Timeout(), func(quiet string, what zkconn.Event) (time.Duration, error) {
			switch {
			case quiet == "":
				return e.Timeout(), look()
			case what == zkconn.Disconnected, what == zkconn.Changed:
				return 0, ErrAgain
			}
			return 0, nil
		})
	})
	if errors.Is(err, ErrGone) {
		err = nil
	}
	return err
}

// LookPause is the first pause between the departure of a sentinel and a look at the others.
// Mostly the end comes right behind it.
const LookPause = 10 * time.Millisecond

// Sentinel is for who waits for an end that the last party to leave should tell, but might not: it may die. Whoever
// waits watches one living party besides, the sentinel, and looks again when that has left. It need not know of the
// others: if the wait is over, that one has left, too. The zero Sentinel is ready to use, for one wait.
type Sentinel struct {
	// Spread is in how long all who wait look, each at a random instant of it, where the first one to look does something
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

// Wait returns the first news of one of ends. path is "" when the others should be looked at instead: some time after the
// sentinel has left, or when nothing was heard for quiet. sentinel may be "".
func (s *Sentinel) Wait(ctx context.Context, e *zkconn.Epoch, ends []string, sentinel string, quiet time.Duration) (path string, news zkconn.Event, err error) {
	if err := e.Await(ctx); err != nil {
		return "", 0, err
	}
	began := time.Now()
	path, news, err = s.listen(ctx, e, ends, sentinel, quiet-s.random())
	// What says again and again that something has happened must not be asked in a spin.
	if idle := path == "" || news != zkconn.Deleted; idle && err == nil && time.Since(began) < LookPause {
		err = s.pace.Rest(ctx, e)
	}
	return path, news, err
}

func (s *Sentinel) listen(ctx context.Context, e *zkconn.Epoch, ends []string, sentinel string, quiet time.Duration) (end string, news zkconn.Event, err error) {
	paths := ends
	if sentinel != "" {
		paths = append(ends[:len(ends):len(ends)], sentinel)
	}
	err = Listen(ctx, e, paths, quiet, func(path string, what zkconn.Event) (time.Duration, error) {
		if path == "" || path != sentinel || what == zkconn.Disconnected {
			end, news = path, what
			return 0, nil
		}
		s.look = min(max(2*s.look, LookPause), max(e.Timeout()/3, LookPause))
		return s.look + s.random(), nil
	})
	return end, news, err
}

func (s *Sentinel) random() time.Duration { return rand.N(max(s.Spread, 1)) }
