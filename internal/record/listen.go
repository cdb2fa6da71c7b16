package record

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// ErrGone means that a node is not there any more, which nobody has told.
var ErrGone = errors.New("gone")

// UntilGone waits until there is no node at path. was tells that there was one when the wait began. check, if not nil, is
// called when nothing was heard for a session timeout; an error of it ends the wait, without one if it is ErrGone.
//
// Then it also asks whether the node is there: a server that tells nobody of the end of a node that he may not read
// (3.8 with its later security fixes) would leave us asleep for ever.
func UntilGone(ctx context.Context, e *zkconn.Epoch, path string, check func() error) (was bool, err error) {
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
	err = Insist(ctx, e, func() error {
		told := make(chan event, 1)
		w, err := e.Watch(ctx, path, func(n zkconn.Event) { told <- event{path, n} })
		if err != nil {
			return err
		}
		defer w.Stop()
		n, err := await(ctx, e, told, look)
		was = was || n.news != zkconn.NotFound
		if n.news == zkconn.Disconnected || n.news == zkconn.Changed {
			err = ErrAgain
		}
		return err
	})
	if errors.Is(err, ErrGone) || errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return was, err
}

// event is news of a node.
type event struct {
	path string
	news zkconn.Event
}

// await waits for news. check is called when nothing was heard for a session timeout, and its error ends the wait.
func await(ctx context.Context, e *zkconn.Epoch, told <-chan event, check func() error) (event, error) {
	quiet := time.NewTicker(max(e.Timeout(), time.Millisecond))
	defer quiet.Stop()
	for {
		select {
		case n := <-told:
			return n, nil
		case <-ctx.Done():
			return event{}, context.Cause(ctx)
		case <-e.Over():
			return event{}, zkconn.ErrOver
		case <-quiet.C:
			if err := check(); err != nil {
				return event{}, err
			}
		}
	}
}

// LookPause is the first pause between the departure of a sentinel and a look at the others.
// Mostly the end comes right behind it.
const LookPause = 10 * time.Millisecond

// Sentinel is for who waits for an end that the last party to leave should tell, but might not: it may die. Whoever
// waits watches one living party besides, the sentinel, and looks again when that has left. It need not know of the
// others: if the wait is over, that one has left, too. The zero Sentinel is ready to use, for one wait.
type Sentinel struct {
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
	path, news, err = s.listen(ctx, e, ends, sentinel, quiet)
	// What says again and again that something has happened must not be asked in a spin.
	if idle := path == "" || news != zkconn.Deleted; idle && err == nil && time.Since(began) < LookPause {
		err = s.pace.Rest(ctx, e)
	}
	return path, news, err
}

func (s *Sentinel) listen(ctx context.Context, e *zkconn.Epoch, ends []string, sentinel string, quiet time.Duration) (string, zkconn.Event, error) {
	paths := ends
	if sentinel != "" {
		paths = append(ends[:len(ends):len(ends)], sentinel)
	}
	told := make(chan event, len(paths))
	for _, w := range e.WatchAll(paths, func(path string, n zkconn.Event) { told <- event{path, n} }, nil) {
		defer w.Stop()
	}
	t := time.NewTimer(max(quiet, time.Millisecond))
	defer t.Stop()
	for {
		select {
		case n := <-told:
			if n.path != sentinel || n.news == zkconn.Disconnected {
				return n.path, n.news, nil
			}
			s.look = min(max(2*s.look, LookPause), max(e.Timeout()/3, LookPause))
			t.Reset(s.look)
		case <-t.C:
			return "", 0, nil
		case <-ctx.Done():
			return "", 0, context.Cause(ctx)
		case <-e.Over():
			return "", 0, zkconn.ErrOver
		}
	}
}
