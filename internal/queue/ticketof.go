package queue

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// TicketOf returns the ticket of a node in the queue's directory that a transaction of the caller's has made in the session e,
// and that nothing queues behind. So that transaction must ensure that no other holds at the same time. The name must be
// used once, because the ticket deletes the node by its name.
//
// The ticket is like one of Obtain: there is proof that its session lives, and Leave removes the node. On an error the node is
// removed.
func (q *Queue) TicketOf(ctx context.Context, e *zkconn.Epoch, name string, czxid int64) (t *Ticket, err error) {
	t = newTicket(q, e, Entry{Name: name, Kind: q.Kind, Weight: 1, Czxid: czxid}, q.Dir+"/"+name)
	if t.undepend, err = e.Depend(ctx); err != nil {
		t.Leave(node.Grace)
		return nil, err
	}
	t.OnLoss(nil) // from here on a loss ends the ticket; the caller, which makes a lease of it, is to hear of that later
	return t, nil
}
