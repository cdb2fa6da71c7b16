package fencing

import (
	"context"
	"strconv"

	"github.com/go-menagerie/menagerie/zksync"
)

// Kafka is what fencing needs of a client, whose producer has a transactional.id: all holders have the same one.
type Kafka interface {
	// Init is initTransactions. The broker raises the epoch, aborts what an earlier producer has begun, and
	// refuses the earlier producer from then on.
	Init(ctx context.Context) error
	// Last is the last record of the topic that is committed.
	Last(ctx context.Context) (string, error)
	// Publish is beginTransaction, send and commitTransaction.
	Publish(ctx context.Context, record string) error
}

// Topic is a topic of Kafka whose last record counts.
type Topic struct{ Kafka }

// Claim implements Store. The epoch follows the calls of Init, not the grants. A holder that was paused before Init gets
// the newest epoch, too. So the servers of the lock are asked after Init, and a late holder stops here.
func (t Topic) Claim(ctx context.Context, l *zksync.Lease) (pieces int, err error) {
	if err := t.Init(ctx); err != nil {
		return 0, err
	}
	if _, err := l.Guard(ctx); err != nil { // an empty transaction, which they refuse once l is lost
		return 0, err
	}
	last, err := t.Last(ctx)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(last)
}

// Write implements Store. The broker refuses an earlier epoch. A holder that a late one has fenced begins again with Claim.
func (t Topic) Write(ctx context.Context, _ *zksync.Lease, pieces int) error {
	return t.Publish(ctx, strconv.Itoa(pieces))
}
