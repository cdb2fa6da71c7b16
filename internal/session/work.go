package session

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Hold is what Close must end: a lease, or an object whose goroutines hold or wait.
type Hold interface {
	// Finish ends it with err. It reports whether there was something to end.
	Finish(err error) bool
}

// Remember registers a hold, so that Close ends it. It reports false after Close has begun.
//
// An object is registered once for all its leases and all who wait. It must make each of them under a lock of its own, and
// not if the session is Closing then. Close sets Closing before it calls Finish, which takes that lock. So either the
// object finds the session Closing, or Finish finds what the object has made. Closing is set under mu, so an object
// that Remember refuses finds the session Closing, too.
func (s *Session) Remember(h Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Closing() {
		return false
	}
	s.holds[h] = struct{}{}
	return true
}

// Forget undoes Remember: the hold has ended.
func (s *Session) Forget(h Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// Keeper is something that keeps a node there.
type Keeper struct {
	Leaving context.Context // ends when it gives the node up
	Done    <-chan struct{} // closed when nothing more will happen
}

// ErrOccupied means that another of this session keeps the node.
var ErrOccupied = errors.New("this session keeps the node already")

// Occupy notes that who keeps a node at a path of the servers, until Vacate. If another of this session does, the error is
// ErrOccupied. If that one is giving it up, it may have a node there, or may yet make it, so Occupy waits for its end, or
// until who gives up itself or the session closes.
func (s *Session) Occupy(path string, who *Keeper) error {
	for {
		stored, taken := s.kept.LoadOrStore(path, who)
		other := stored.(*Keeper)
		switch {
		case !taken:
			return nil
		case other.Leaving.Err() == nil:
			return ErrOccupied
		}
		select {
		case <-other.Done:
		case <-who.Leaving.Done():
			return errs.ErrReleased
		case <-s.Closed():
			return errs.ErrClosed
		}
	}
}

// Vacate undoes Occupy.
func (s *Session) Vacate(path string) { s.kept.Delete(path) }

// Shared returns what the objects of a recipe share in this session: what first has returned to one of those who gave this key.
func (s *Session) Shared(key any, first func() any) any {
	if v, there := s.shared.Load(key); there {
		return v
	}
	v, _ := s.shared.LoadOrStore(key, first())
	return v
}

// Call is a call of the form without errors (such as Lock), which goes on until it succeeds. See [Session.Call].
type Call struct {
	s      *Session
	closed bool // before the call began
}

// Call begins such a call.
func (s *Session) Call() Call { return Call{s, s.Closing()} }

// End ends the call. If err is not nil, it panics with err, but not if Close of the session has ended the call: then it
// does not return, as sync's would wait until main returns. To return would say that the caller holds what it asked for.
// To end the goroutine would run its deferred functions, which unlock what it does not hold.
func (c Call) End(err error) {
	switch {
	case err == nil:
	case c.closed || !errors.Is(err, errs.ErrClosed):
		panic(err)
	default:
		c.s.park(err)
	}
}

// park is the rest of a call that Close has ended.
func (s *Session) park(err error) {
	if f := s.parked.Load(); f != nil {
		(*f)(err)
	}
	select {}
}

// OnPark has f called in place of a wait that never ends, with the error of the call. It is for tests with
// goroutines that must end.
func (s *Session) OnPark(f func(err error)) { s.parked.Store(&f) }

// Briefly runs an attempt (such as TryLock) of the form without leases, which has no
// context and no error to return. It reports whether the attempt succeeded. Without a
// connection it reports false at once. It waits for the servers' answers at most a third
// of the session timeout. If Close of the session ends the attempt, it reports false. It panics on other errors that another
// attempt would not change.
func (s *Session) Briefly(try func(context.Context) error) bool {
	open := s.Opened() && !s.Closing()
	if open && s.State() != Connected {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience())
	defer cancel()
	err := try(ctx)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errs.ErrNotAcquired), errors.Is(err, context.DeadlineExceeded), open && errors.Is(err, errs.ErrClosed):
		return false
	}
	panic(err)
}

// Patience is how long a call without a context may wait for an answer that does not depend on
// other holders.
func (s *Session) Patience() time.Duration {
	if !s.Opened() {
		return 0
	}
	return max(s.Timeout()/3, 10*time.Millisecond)
}
