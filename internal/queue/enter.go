package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// enter puts an entry at the tail of the queue in one round trip.
// It gives up old, if there is one, also when it fails. With a Config old is nil.
func (q *Queue) enter(ctx context.Context, e *zkconn.Epoch, old *Ticket) (*Ticket, error) {
	if old != nil {
		old.Asked.drop(e.Linked()) // before the entry, which then may be alone
	}
	create, data, w := node.Make, q.plain, waiterOf(ctx)
	if w.speaks() {
		data = func() []byte { return q.Data(w.say()) }
	}
	if q.Config != nil {
		create = q.makeAgreed
	}
	read := q.readTail(e) // on its way before the entry is
	n, err := create(ctx, e, node.Spec{
		Dir: q.Dir, Base: q.Base, ACL: q.ACL, Plain: q.readOnlyDir, Type: q.Type, Looks: q.Looks, Refuse: q.Refuse,
		Name:   func(uuid string) string { return entryPrefix(q.Kind, uuid, q.Weight) },
		Data:   data,
		Flags:  zk.FlagEphemeral | zk.FlagSequence,
		Sealed: q.seals,
		Before: func() []any {
			if q.Config != nil {
				return q.Config.Check()
			}
			var ops []any
			if q.Check != nil {
				ops = q.Check()
			}
			if old != nil {
				ops = append(ops, old.removal(old.delayed.mark.Load())...)
			}
			return ops
		},
		Tried: func(applied bool) {
			if old == nil {
				return
			}
			if applied {
				old.End(Replaced, 0)
			} else {
				old.Leave(0) // only a clean answer says that the transaction removed it
			}
			old = nil
		},
	})
	if old != nil {
		old.Leave(0)
	}
	if err != nil {
		return nil, err
	}
	t, err := q.entered(n, w)
	if err != nil {
		return nil, err
	}
	if t.inDoubt && n.Dir != nil {
		t.guess = q.guess(t.Entry, n.Dir.NumChildren, n.Before, read)
	}
	// Cversion counts the changes to the set of children. If it is 1, this create was the first.
	if q.Config != nil && n.Dir != nil && n.Dir.Cversion == 1 {
		return t, q.Config.Founded(ctx, e)
	}
	return t, nil
}

// entered is the ticket of the node n, which was made for w.
func (q *Queue) entered(n *node.Node, w *Waiter) (*Ticket, error) {
	self, ok := ParseEntry(n.Name)
	if !ok || self.UUID != n.UUID {
		node.Abandon(n.Epoch, q.Dir, n.UUID)
		return nil, fmt.Errorf("the servers made node %q, which is not what was asked for", n.Name)
	}
	self.Czxid = n.Czxid
	t := newTicket(q, n.Epoch, self, n.Path)
	t.delayed.entered = time.Now()
	// An entry that is the only child of the directory is granted whatever can be granted at all: nobody
	// is ahead of it, and nobody can get ahead of it any more. All others must learn who is ahead.
	if n.Dir != nil {
		children := n.Dir.NumChildren
		q.Crowds.note(q.Dir, children)
		// Each entry of ours writes to the directory, so there were never more of them than versions: its other children are nodes
		// below the lock. So nobody is ahead any more once as many children as versions have been deleted, if not earlier.
		t.crowd = min(q.Crowds.of(q.Dir, children), n.Dir.Version)
		t.front = min(t.crowd+deleted(n.Dir), n.Dir.Version)
		if t.sole = children == 1; t.sole {
			t.sight.queued(0)
		}
	}
	if w != nil {
		t.Said = w.said
		w.newest.Store(t)
	}
	t.inDoubt = !t.sole || len(q.blockers(nil, self)) > 0
	return t, nil
}

// makeAgreed is node.Make under a Config: it makes the entry only where the present value is.
func (q *Queue) makeAgreed(ctx context.Context, e *zkconn.Epoch, s node.Spec) (*node.Node, error) {
	for pace := (node.Pace{}); ; {
		if _, err := q.Config.Learn(ctx, e, q.Weight); err != nil {
			return nil, err
		}
		n, err := node.Make(ctx, e, s)
		var refused *node.Refused
		switch {
		case !errors.As(err, &refused):
			return n, err
		case errors.Is(refused.Err, zk.ErrNoAuth): // we may not read any more what the servers check
			return nil, refused.Err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return nil, err
		}
	}
}

// seals reports whether an entry should be a sealed one, whose release the holder can announce. An entry of a mutex always
// is. That of a writer is if others are known to queue. Behind one that is not sealed, a departure without a change
// proves that no reader took its place, so two writers in turn need no announcement. found is what was read of the directory.
func (q *Queue) seals(found *zkconn.Content) bool {
	others := found != nil && found.Stat.NumChildren > 0
	return !q.Open && q.Policy == nil && (q.Kind == KindLock || q.Kind == KindWrite && (others || q.Crowds.in(q.Dir)))
}
