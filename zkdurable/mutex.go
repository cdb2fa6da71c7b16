package zkdurable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// Mutex is a lock of owners. An owner is a name: all who give the same one are the same. A hold lasts until the owner
// unlocks it or somebody breaks it. It is safe for use by many goroutines.
type Mutex struct {
	path  string
	at    *session.Access
	q     *queue.Queue
	terms record.Terms[state]
}

// Holder is what is known of the hold of the moment.
type Holder struct {
	Owner string
	Since time.Time // when it was granted, by the clock of the process that locked; in UTC
	Token zksync.Token
	Note  string // of [Hold.SetNote]
	// Alive says that a process has the hold open, and that its session lives. It is false for up to a session timeout when
	// that process changes to another session, and true for up to a session timeout after it died.
	Alive bool
}

// NewMutex names a lock by a path of its own, which is created when it is first needed. It does no I/O. The first call
// reports a malformed path, a nil session, or one of the options WithHandover, WithLinger, WithMaxHold and
// WithAsyncUnlock as zksync.ErrMisuse. WithName is the name under which this process breaks holds.
func NewMutex(s *zksync.Session, path string, opts ...zksync.Option) *Mutex {
	at := session.NewAccess((*session.Session)(s), path, opts).Without(session.OfHolds...)
	m := &Mutex{path: path, at: at, q: at.Queue("/"+layout.Durable+"/queue", queue.KindLock)}
	m.terms.Base, m.terms.ACL, m.terms.Type = at.Full(path)+"/"+layout.Durable, at.ACL(), layout.Durable
	m.terms.Keys, m.terms.Check = []string{"hold"}, func(state) error { return nil }
	m.terms.First = func() (state, []string) { return state{}, []string{m.q.Dir, m.writers()} }
	return m
}

func (m *Mutex) writers() string              { return m.terms.Base + "/writers" }
func (m *Mutex) holdNode(t node.Token) string { return m.terms.Base + "/hold-" + t.String() }
func (m *Mutex) openNode(t node.Token) string { return m.terms.Base + "/open-" + t.String() }

// LockContext waits until the lock is free, and takes it for the owner.
//
// It blocks until then or until ctx ends. Waiters are granted in the order in which the servers queued them. If ctx ends,
// the error wraps the context's error. If the lock may have been granted at that instant, it is given back, by a
// goroutine as long as it takes, and LockContext waits briefly for that. A disconnect keeps the place in the queue; after
// a lost session it queues anew, unless the lock was granted in that session: then it returns that hold. If the session is
// closed, the error is zksync.ErrClosed. The hold outlives ctx, the session and the process.
//
// If the owner holds the lock, the error is zksync.ErrMisuse: [Mutex.Resume] is the way to a hold that the owner has. It
// is also the way to a hold that was granted to a process that died, or closed its session, before it heard of that: the
// error then satisfies [zksync.Ambiguous], if somebody was left to read it. [Mutex.Holder] shows such a hold. An empty
// name is zksync.ErrMisuse, too, and one of more than 1 KB, or that is not UTF-8.
//
// It costs three requests if the lock is free. If it is held, it costs three until it waits, and two when its turn
// comes; while it waits as the first, it asks once in each session timeout whether the hold still lasts. Others in the queue
// pay as in that of a mutex. The first use of a path costs a few requests more.
func (m *Mutex) LockContext(ctx context.Context, owner string) (*Hold, error) {
	return m.lock(ctx, "lock", owner, false)
}

// TryLockContext takes the lock for the owner if it is free and nobody waits for it. Otherwise it fails with
// zksync.ErrNotAcquired, or with zksync.ErrMisuse if the owner holds it. It blocks for the servers' answers, and is like
// LockContext in the rest. It costs two requests if the lock is held, and six if it takes it.
func (m *Mutex) TryLockContext(ctx context.Context, owner string) (*Hold, error) {
	return m.lock(ctx, "try-lock", owner, true)
}

// Resume continues a hold of the owner: after a restart of its process, or elsewhere. The token is the same.
//
// It fails with zksync.ErrNotAcquired if the owner holds nothing, and as long as the session of another process lives that
// has the hold open. So after a crash it may fail for a session timeout: try again, or use a session file
// ([zksync.WithSessionFile]), with which the next process ends the session of the one before.
//
// It blocks for the servers' answers, also for a connection, until ctx ends. If ctx ends, the error wraps the context's error, and
// a hold that may have been opened is left to others again. In a new session it asks again. If the session is closed,
// the error is zksync.ErrClosed. It costs four requests.
func (m *Mutex) Resume(ctx context.Context, owner string) (*Hold, error) {
	err := validOwner(owner)
	r := &resumption{m: m, owner: owner, id: node.NewUUID()}
	if err == nil {
		err = m.at.In(ctx, r.run)
	}
	if err != nil {
		if r.doubt != nil {
			err = m.undo(ctx, err, r.undo)
		}
		return nil, errs.Wrap("resume", m.path, err)
	}
	return r.hold, nil
}

// Holder tells who holds the lock; the zero Holder means that it is free. It is what the leader of the servers knew at
// some instant of the call; Alive may be a moment younger.
//
// It blocks for the servers' answers, until ctx ends (the error wraps the context's error). Without a connection it waits;
// in a new session it asks again. If the session is closed, the error is zksync.ErrClosed. It creates nothing. It costs
// two requests if the lock is free, and three if it is held.
func (m *Mutex) Holder(ctx context.Context) (x Holder, err error) {
	err = m.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		x = Holder{}
		v, _, err := m.terms.Ask(ctx, e)
		if err != nil || v.T.Hold == nil {
			return err
		}
		h := v.T.Hold
		_, alive, err := e.Exists(ctx, m.openNode(h.Token))
		if err == nil {
			x = Holder{Owner: h.Owner, Since: h.Since, Token: zksync.Token(h.Token), Note: h.Note, Alive: alive}
		}
		return err
	})
	return x, errs.Wrap("holder", m.path, err)
}

// Break ends the hold with this token, which [Mutex.Holder] tells, whether or not a process has it open. It is for
// somebody who has decided that. The next holder is shown the name of this process ([zksync.WithName], or else the
// process and its host) and why; so is the holder whose hold it was, if its process lives: see [Hold.Broken].
//
// It fails with zksync.ErrStale if that hold does not last any more; it never ends a later one. It blocks for the
// servers' answers, until ctx ends. If the answer is lost, it finds out what became of the request, in the next session if
// need be. If ctx ends, or the session is closed (zksync.ErrClosed), before that is known, the error satisfies
// [zksync.Ambiguous]: ask Holder. A reason of more than 64 KB, or that is not UTF-8, is zksync.ErrMisuse. It costs three requests; one more
// if no process has the hold open.
func (m *Mutex) Break(ctx context.Context, token zksync.Token, why string) error {
	err := validText("reason", why)
	doubt, id := false, node.NewUUID()
	if err == nil {
		err = m.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
			return m.breaks(ctx, e, node.Token(token), &ended{ID: id, By: m.name(), Why: why}, &doubt)
		})
	}
	return errs.Wrap("break", m.path, uncertain(err, doubt))
}

// breaks is Break in one session. doubt is set while it is unknown whether a request of an earlier session was applied.
func (m *Mutex) breaks(ctx context.Context, e *zkconn.Epoch, token node.Token, x *ended, doubt *bool) error {
	v, _, err := m.terms.Ask(ctx, e)
	if err != nil {
		return err
	}
	if v.T.is(token) {
		x.Token, x.Owner = token, v.T.Hold.Owner
		err := m.free(ctx, e, x.Token, -1, x, doubt)
		if !record.Conflict(err) { // else it has ended meanwhile
			return err
		}
		if v, _, err = m.terms.Ask(ctx, e); err != nil {
			return err
		}
	}
	before := v.T.Before
	switch {
	case before != nil && before.ID == x.ID:
		*doubt = false
		return nil
	case before != nil && before.Token == token:
		*doubt = false // somebody else has ended it
	}
	return zksync.ErrStale
}

// name is how this process is shown to others.
func (m *Mutex) name() string {
	o := m.at.Content(node.Content{}).Owner
	return cmp.Or(o.Name, fmt.Sprintf("process %d on %s", o.PID, o.Host))
}

// free ends a hold, if its node has this version; -1 is for any. x says how it has ended; after a grant that nobody
// was told of, it is the hold before.
func (m *Mutex) free(ctx context.Context, e *zkconn.Epoch, token node.Token, version int32, x *ended, doubt *bool) error {
	ops := []any{
		&zk.DeleteRequest{Path: m.holdNode(token), Version: version},
		// The node of the hold was there, so the base node tells of this hold, and may be written at any version.
		&zk.SetDataRequest{Path: m.terms.Base, Data: record.Encode(state{Before: x}), Version: -1},
		&zk.DeleteRequest{Path: m.openNode(token), Version: -1},
	}
	err := m.apply(ctx, e, doubt, ops...)
	if record.RefusedAt(err, 2, zk.ErrNoNode) { // no process has it open
		err = m.apply(ctx, e, doubt, ops[:2]...)
	}
	return err
}

// apply makes a change that the caller makes again in the next session if its outcome is unknown because
// the session ended. Then doubt is set, and the error is zkconn.ErrOver.
func (m *Mutex) apply(ctx context.Context, e *zkconn.Epoch, doubt *bool, ops ...any) error {
	_, err := m.at.Apply(ctx, e, m.writers(), ops...)
	if errs.Ambiguous(err) {
		*doubt = true
		if errors.Is(err, errs.ErrSessionExpired) {
			return zkconn.ErrOver
		}
	}
	return err
}

// uncertain marks err if it is unknown whether a request was applied.
func uncertain(err error, doubt bool) error {
	if doubt && !errs.Ambiguous(err) {
		return errs.MarkAmbiguous(err)
	}
	return err
}

// undo has f run until it has taken back what a call may have done that failed with err. It waits briefly for that.
// If f has not succeeded by then, the error says that the outcome is unknown.
func (m *Mutex) undo(ctx context.Context, err error, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	done := make(chan error, 1)
	if m.at.Spawn(func() { done <- m.at.Session.In(context.Background(), f) }) {
		wait := time.NewTimer(node.Grace)
		defer wait.Stop()
		select {
		case undone := <-done:
			if undone == nil && ctx.Err() != nil {
				return errs.OfContext(ctx)
			}
		case <-wait.C:
		}
	}
	return uncertain(err, true)
}
