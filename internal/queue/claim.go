package queue

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Claim is Obtain for what is held by a node that a transaction of the caller's makes, and that nobody queues behind.
// So that transaction must see to it that nobody else holds at the same time. claim runs it, and returns the name of the
// node in the queue's directory and its czxid. The name must be one that is used once, because the ticket deletes the
// node by its name. If the session of claim ends (zkconn.ErrOver), Claim calls it again in the next one.
//
// The ticket is as good as one of Obtain: there is proof that its session lives, lost is called when it is lost, and
// Leave removes the node.
func (q *Queue) Claim(ctx context.Context, lost func(*Ticket), claim func(context.Context, *zkconn.Epoch) (name string, czxid int64, err error)) (*Ticket, error) {
	t, err := q.acquire(ctx, lost, node.Pace{Free: 1}, func(e *zkconn.Epoch) (*Ticket, error) {
		name, czxid, err := claim(ctx, e)
		if err != nil {
			return nil, err
		}
		return newTicket(q, e, Entry{Name: name, Kind: q.Kind, Weight: 1, Czxid: czxid}, q.Dir+"/"+name), nil
	})
	if err != nil {
		return nil, node.Reason(ctx, err)
	}
	return t, nil
}
