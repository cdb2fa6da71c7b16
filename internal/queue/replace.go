package queue

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A holder may put another node in the place of its own, in one transaction: a read entry for a
// write entry (a downgrade), a smaller request for permits, or a node outside the queue for which
// it gives the lock up (a wait for a condition). Between the request and a clear answer its own
// node may be removed at any time, by this transaction. That is no loss: see SetReplacing.

// Successor makes the ticket of an entry of q that is to take the place of old,
// which queues in the same directory. The entry has old's number, so all entries
// behind old are behind it. The ticket is good only once its entry has replaced old.
func (q *Queue) Successor(old *Ticket) *Ticket {
	self := old.Entry
	self.Kind, self.Weight, self.UUID = q.Kind, q.Weight, node.NewUUID()
	self.Name = entryPrefix(q.Kind, self.UUID, q.Weight) + formatSequence(old.Entry.Seq)
	t := newTicket(q, old.Epoch, self, q.Dir+"/"+self.Name)
	t.Said, t.undepend = old.Said, t.Epoch.Inherit()
	return t
}

// ReplaceBy puts the node of next in the place of t's node. If it returns an
// error, sent tells whether the transaction may have been applied, or may yet be.
func (t *Ticket) ReplaceBy(ctx context.Context, next *Ticket, data []byte) (sent bool, err error) {
	return t.replace(ctx, Replacement{Dir: t.queue.Dir, Node: next.Node, Data: data, ACL: next.queue.ACL}, func() []any {
		if t.Entry.sealed() {
			return nil // a change would be taken for a release
		}
		return []any{&zk.SetDataRequest{Path: t.Node, Version: -1}} // announced: see mayBeReplaced
	})
}

// MakeWay puts the node w in the place of t's node, and removes its mark. Otherwise it is like ReplaceBy.
func (t *Ticket) MakeWay(ctx context.Context, w Replacement) (sent bool, err error) {
	return t.replace(ctx, w, t.announcement)
}

// Replacement is a node that takes the place of a ticket's
// own node. It is ephemeral, and nobody else uses its name.
type Replacement struct {
	Dir, Node string // on the servers; Node is in Dir, which is made when it is missing
	Data      []byte
	ACL       []zk.ACL
}

// replace makes r and deletes t's node in one transaction, with the operations of before in between.
// before is called for every attempt. After a lost reply it sends the transaction again. That is harmless:
// nobody else uses r's name, so if r is there already, the transaction was applied.
func (t *Ticket) replace(ctx context.Context, r Replacement, before func() []any) (sent bool, err error) {
	for made, pace, announce := (node.Pace{Free: 1}), (node.Pace{}), true; ; {
		ops := []any{&zk.CreateRequest{Path: r.Node, Data: r.Data, Acl: r.ACL, Flags: zk.FlagEphemeral}}
		if announce {
			ops = append(ops, before()...)
		}
		mark := t.delayed.mark.Load()
		ops = append(append(ops, t.deletion()), mark.removal()...)

		if err := t.Epoch.Await(ctx); err != nil {
			return sent, err
		}
		call := t.Epoch.StartMulti(ops...)
		if _, err := call.Wait(ctx, t.Epoch); !call.Answered() {
			return true, err // ctx or the epoch ended first
		}
		_, err := call.Result() // also if ctx ended at the very same time
		var refused *zkconn.TxnError
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNodeExists):
			return true, nil
		case errors.As(err, &refused) && refused.Index == 0 && errors.Is(err, zk.ErrNoNode):
			if err := made.Rest(ctx, t.Epoch); err != nil { // not after it is made: it is empty then, and may be removed
				return sent, err
			}
			if err := t.makeDir(ctx, r); err != nil {
				return sent, err
			}
		case mark != nil && errors.As(err, &refused) && refused.Index == len(ops)-1 && errors.Is(err, zk.ErrNoNode):
			t.delayed.mark.Swap(nil).settle() // somebody deleted our mark; there is none to be removed
		case errors.Is(err, zk.ErrNoNode):
			return true, node.ErrGone // somebody deleted our own node, and so ended the hold
		case t.Entry.sealed() && announce && errors.As(err, &refused) && refused.Index == 1 && errors.Is(err, zk.ErrNoAuth):
			announce = false // the connection on which the servers knew our identity was lost
		case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
			sent = sent || zkconn.Unknown(err)
			if err := pace.Rest(ctx, t.Epoch); err != nil {
				return sent, err
			}
		case errors.As(err, &refused):
			return sent, refused.Err
		default:
			return sent, err
		}
	}
}

// makeDir makes the directory of r. It returns node.ErrGone if our own node has gone: then
// there is nothing to replace, and it does not matter whether the directory could be made.
func (t *Ticket) makeDir(ctx context.Context, r Replacement) error {
	if r.Dir == t.queue.Dir {
		return node.ErrGone // our own node was in it
	}
	_, err := node.MakeDirBelow(ctx, t.Epoch, t.queue.Base, r.Dir, r.ACL)
	if t.queue.Base != "" && errors.Is(err, zk.ErrNoNode) {
		return node.ErrGone // with the base
	}
	if err == nil {
		return nil
	}
	if _, there, lookErr := t.Epoch.Exists(ctx, t.Node); lookErr == nil && !there {
		return node.ErrGone
	}
	return err
}
