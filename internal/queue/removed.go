package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A process that removes the entry of a holder may say why: the transaction that deletes the entry writes that to the node of
// the request (revoke.go). The holder's lease ends as it does without a reason. Then it reads the node, and deletes it. The node
// has the uuid of the entry in its name, so no later hold reads it.

// Remove deletes the entry en, and leaves what for the maker of the entry, if that can read it: then told is the path of the node
// with it. The node is an ephemeral of e, or of the maker. The maker deletes it when it has read it. The error is errs.ErrStale if the
// entry is gone already.
func (q *Queue) Remove(ctx context.Context, e *zkconn.Epoch, en Entry, what *node.Content) (told string, err error) {
	deletion := &zk.DeleteRequest{Path: q.Dir + "/" + en.Name, Version: -1}
	if what != nil && en.ours() {
		what.Removed = true
		write, create := q.writes(en, what.Encode())
		if _, err = q.request(ctx, e, en, append(write, deletion), append(create, deletion)); !refusedAt(err, 1, zk.ErrNoAuth) {
			return q.Dir + "/" + requestName(en.UUID), err
		} // we may not write there: no reason to keep the entry
	}
	_, err = q.request(ctx, e, en, []any{deletion}, nil)
	return "", err
}

// Because is the operation by which another transaction that deletes the entry leaves what for its maker; nil if that could not read
// it. The servers refuse it if the maker listens to requests.
func (q *Queue) Because(en Entry, what node.Content) any {
	if !en.ours() {
		return nil
	}
	what.Removed = true
	_, create := q.writes(en, what.Encode())
	return create[len(create)-1]
}

// removal is what the holder learns about the removal of its node.
type removal struct {
	learned chan struct{} // closed when the node of the request was read
	why     error         // an errs.ErrLost; nil if there is no reason
}

// learnWhy returns a function that reads the node of the request in the background, and deletes it if it has a reason, or is the
// ticket's own. It must be called.
func (t *Ticket) learnWhy() (begin func()) {
	r := &removal{learned: make(chan struct{})}
	t.why.Store(r)
	learn := func() {
		data, _, err := t.Epoch.Get(context.Background(), t.Asked.path()) // the epoch ends it
		if c := node.Decode(data); err == nil && c.Removed {
			r.why = lostBy(c)
		}
		close(r.learned) // before the delete, which the process that has removed the entry takes for the answer
		if own := t.Asked.node.Swap(false); own || r.why != nil {
			t.Asked.delete(t.Epoch.Linked())
		}
	}
	return func() {
		if !t.Epoch.Go(learn) {
			close(r.learned)
		}
	}
}

// lostBy is "lease lost: removed by ops-1 pid 4711 (alice): REASON".
func lostBy(c node.Content) error {
	text := "removed by " + wording.WhoNamed(c.Owner, 0)
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return fmt.Errorf("%w: %s", errs.ErrLost, text)
}

// WhyRemoved is an errs.ErrLost with the process that has removed the node; nil if that is not known.
func (t *Ticket) WhyRemoved() error {
	r := t.why.Load()
	if r == nil {
		return nil
	}
	select {
	case <-r.learned:
		return r.why
	default:
		return nil
	}
}

// AwaitWhy waits at most for d until it is known whether there is a reason.
func (t *Ticket) AwaitWhy(d time.Duration) {
	if r := t.why.Load(); r != nil {
		node.Settle(t.Epoch, r.learned, d)
	}
}
