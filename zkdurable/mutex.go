package zkdurable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

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

// Mutex is held by a named owner, not by a session. Callers with the same name are the same owner.
type Mutex struct {
	at    *session.Access
	q     *queue.Queue
	terms record.Terms[state]
}

// Holder is the present hold.
type Holder struct {
	Owner string
	Since time.Time // by the clock of the process that locked, in UTC
	Token zksync.Token
	Note  string // of [Hold.SetNote]
	Alive bool   // a process has it open, or died a moment ago
}

// NewMutex names a lock. Its options are WithACL and WithName, the name under which this process breaks
// holds.
func NewMutex(s *zksync.Session, path string, opts ...zksync.Option) *Mutex {
	at := session.NewAccess("zkdurable", (*session.Session)(s), path, opts).Without(session.OfHolds...)
	m := &Mutex{at: at, q: at.Queue("/"+layout.Durable+"/queue", queue.KindLock)}
	m.terms.Base, m.terms.ACL, m.terms.Type = at.Full(path)+"/"+layout.Durable, at.ACL(), layout.Durable
	m.q.Base = m.terms.Base
	m.terms.Keys, m.terms.Check = []string{"hold"}, func(state) error { return nil }
	m.terms.First = func() (state, []string) { return state{}, []string{m.q.Dir, m.writers()} }
	return m
}

// made is m, which NewMutex has made. Of a zero or nil value it panics.
func (m *Mutex) made() *Mutex {
	if m == nil || m.at == nil {
		panic(errs.Unmade("zkdurable", "a Mutex", "NewMutex"))
	}
	return m
}

func (m *Mutex) writers() string              { return m.terms.Base + "/writers" }
func (m *Mutex) holdNode(t node.Token) string { return m.terms.Base + "/hold-" + t.String() }
func (m *Mutex) openNode(t node.Token) string { return m.terms.Base + "/open-" + t.String() }

// Lock waits until the lock is free, in the order of the servers' queue, and takes it for the owner. The hold
// outlives ctx, the session and the process.
//
// If the owner holds the lock, the error is zksync.ErrMisuse: [Mutex.Resume] continues a hold, also one that
// was granted just when its process died. A name has 1 to 1024 bytes of UTF-8.
func (m *Mutex) Lock(ctx context.Context, owner string) (*Hold, error) {
	a := &acquisition{attempt: attempt{m: m.made(), owner: owner}}
	return a.obtain(ctx, "lock", a.run)
}

// TryLock is Lock if the lock is free and has no waiters, else zksync.ErrNotAcquired.
func (m *Mutex) TryLock(ctx context.Context, owner string) (*Hold, error) {
	a := &acquisition{attempt: attempt{m: m.made(), owner: owner}, try: true}
	return a.obtain(ctx, "try-lock", a.run)
}

// Resume continues a hold of the owner, with the same token. It fails with zksync.ErrNotAcquired if the owner
// holds nothing, and while the session of another process has the hold open: after a crash for up to a
// session timeout, or less with [zksync.WithSessionFile].
func (m *Mutex) Resume(ctx context.Context, owner string) (*Hold, error) {
	r := &resumption{attempt: attempt{m: m.made(), owner: owner}, id: node.NewUUID()}
	return r.obtain(ctx, "resume", r.run)
}

// Holder returns the present hold; the zero Holder means that the lock is free. Alive may be newer.
func (m *Mutex) Holder(ctx context.Context) (x Holder, err error) {
	err = m.made().at.Run(ctx, "holder", func(ctx context.Context, e *zkconn.Epoch) error {
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
	return x, err
}

// Break ends the hold with this token, which [Mutex.Holder] returns, whether or not a process has it open.
// The next holder, and a living process that had the hold, see why: [Hold.Broken]. It never ends a later
// hold: the error is zksync.ErrStale.
func (m *Mutex) Break(ctx context.Context, token zksync.Token, why string) error {
	err, doubt := valid("reason", why, 0, maxText), false
	self := m.made().at.Content(node.Content{}).Owner
	x := &ended{ID: node.NewUUID(), By: called(self), Why: why}
	if err == nil {
		err = m.at.Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error {
			return m.breaks(ctx, e, node.Token(token), x, &doubt)
		})
	}
	return m.at.Named("break", errs.InDoubt(err, doubt))
}

// called names a process for people.
func called(o node.Owner) string {
	return cmp.Or(o.Name, fmt.Sprintf("process %d on %s", o.PID, o.Host))
}

// breaks is Break in one session. doubt is set while it is unknown whether a request of an earlier session was applied.
func (m *Mutex) breaks(ctx context.Context, e *zkconn.Epoch, token node.Token, x *ended, doubt *bool) error {
	for range 2 { // after a refusal it looks once more
		v, _, err := m.terms.Ask(ctx, e)
		if err != nil {
			return err
		}
		if !v.T.is(token) {
			before := v.T.Before
			*doubt = *doubt && (before == nil || before.Token != token)
			if before != nil && before.ID == x.ID {
				return nil
			}
			break
		}
		x.Token, x.Owner = token, v.T.Hold.Owner
		if err := m.free(ctx, e, token, -1, x, doubt); !record.Conflict(err) {
			return err
		}
	}
	return zksync.ErrStale
}

// free ends a hold, if its node has this version; -1 is for any. x is what the base node says of the end; after a grant that no
// caller knows of, it is the hold before.
func (m *Mutex) free(ctx context.Context, e *zkconn.Epoch, token node.Token, version int32, x *ended, doubt *bool) error {
	ops := []any{
		&zk.DeleteRequest{Path: m.holdNode(token), Version: version},
		// The node of the hold existed, so the base node has this hold, and may be written at any version.
		&zk.SetDataRequest{Path: m.terms.Base, Data: record.Encode(state{Before: x}), Version: -1},
		&zk.DeleteRequest{Path: m.openNode(token), Version: -1},
	}
	err := m.apply(ctx, e, doubt, ops...)
	if record.RefusedAt(err, 2, zk.ErrNoNode) { // no process has it open
		err = m.apply(ctx, e, doubt, ops[:2]...)
	}
	return err
}

// apply makes a change. If its outcome is unknown because the session ended, it sets doubt and returns zkconn.ErrOver, so that the
// caller makes the change again in the next session.
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

// docs/layout/jobs.md lists the nodes of a lock, and the transactions.
//
// # The lock is not granted while it is held
//
// A grant is one transaction. It deletes the new holder's entry, writes the hold into the base node at the version at
// which the lock was seen free, and makes the node of the hold. While the entry exists, the base node above it cannot have been
// removed and made again. So if the version is unchanged, the lock is free.
//
// # A late request does not change a later hold
//
// The token is the czxid of the entry, so no other hold has the name of that node. The base node has a hold if and only if the
// hold's node exists, because each transaction changes both. Every change of a hold checks or deletes that node, and every grant
// deletes its entry. So a late change finds its own hold or is refused, and a late grant finds its own entry or is
// refused. Tokens grow: the queue grants in the order of czxids.
//
// # One process has a hold open
//
// A process opens a hold in one transaction that writes to the hold's node, at the version that it has read, and makes
// open-<token>. The servers refuse that while that node exists. Each change by a Hold names the version at which it has opened.

// state is the data of the base node.
type state struct {
	Hold   *held  `json:"hold"`             // nil when the lock is free
	Before *ended `json:"before,omitempty"` // the hold before the present one, or the last one
}

// held is a hold that lasts.
type held struct {
	Token node.Token `json:"token"`
	Owner string     `json:"owner"`
	Since time.Time  `json:"since"`
	Note  string     `json:"note,omitempty"`
}

// ended is a hold that has ended. By is empty if it was not broken.
type ended struct {
	Token node.Token `json:"token"`
	Owner string     `json:"owner"`
	ID    string     `json:"id"` // names the Hold that was unlocked, or the call of Break
	By    string     `json:"by,omitempty"`
	Why   string     `json:"why,omitempty"`
}

// is reports whether the hold with this token lasts.
func (s state) is(token node.Token) bool { return s.Hold != nil && s.Hold.Token == token }

// The greatest sizes of an owner's name, and of a note or a reason. They are in one node, and travel with many requests.
const maxOwner, maxText = 1 << 10, 64 << 10

// valid refuses a text that would not be kept unchanged.
func valid(what, text string, least, most int) error {
	if len(text) < least || len(text) > most || !utf8.ValidString(text) {
		return errs.Misuse("the %s must be UTF-8 of %d to %d bytes, and not %s", what, least, most, errs.Quote(text))
	}
	return nil
}
