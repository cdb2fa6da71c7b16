package zksync

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Kind is what an entry of a queue asks for: see [KindLock] and the others.
type Kind = queue.Kind

const (
	// KindLock asks to be alone, and never turns into anything else.
	KindLock = queue.KindLock
	// KindRead asks to be with other readers only.
	KindRead = queue.KindRead
	// KindWrite asks to be alone, and may become a reader in its place.
	KindWrite = queue.KindWrite
	// KindPermit asks for a number of permits.
	KindPermit = queue.KindPermit
)

// Standing is whether a contender holds ([Held]) or waits ([Waiting]).
type Standing = queue.Standing

// What a contender does.
const (
	Held    = queue.Held
	Waiting = queue.Waiting
)

// Contender is one entry of a queue, for people and monitoring. It was true at the
// server that was asked, at the time it was asked. Its fields:
//
//	Position int       // from 0, in the order of the queue
//	Kind     Kind      // what it asks for
//	State    Standing  // Held, or Waiting
//	Owner    Owner     // who says it is its owner
//	Session  int64     // the ZooKeeper session it belongs to
//	Since    time.Time // when it queued; by the owner's clock if it said so, else the server's
//	Token    Token     // the fencing token of its grant, without local hand-overs
//	Node     string    // the path of its node
type Contender = queue.Contender

// Contenders lists the entries of the queue at path in order, those of other
// libraries included. The path of a semaphore stands for the queue below it. A path that
// does not exist has no contenders. It blocks for one listing and one round of reads, through disconnects,
// until ctx ends or the session is closed.
func Contenders(ctx context.Context, s *Session, path string) ([]Contender, error) {
	wrap := func(err error) ([]Contender, error) {
		return nil, &Error{Op: "list", Path: path, Err: err}
	}
	if s == nil {
		return wrap(errs.ErrNoSession)
	}
	if err := node.ValidatePath(path); err != nil {
		return wrap(err)
	}
	q := lookAt(s.inner(), path)
	var list []Contender
	err := s.inner().In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		at, entries, err := q.Locate(ctx, e)
		if err == nil {
			list, err = at.Describe(ctx, e, entries, func() (int64, error) {
				t, err := at.Permits(ctx, e, entries)
				return t.Now(), err
			})
		}
		return err
	})
	if err != nil {
		return wrap(err)
	}
	return list, nil
}

// lookAt is the queue at one of the session's paths, for somebody who only looks.
func lookAt(s *session.Session, path string) *queue.Queue {
	return &queue.Queue{Dir: s.Full(path), Shown: path}
}
