package zkgroup

import (
	"context"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// The events of an item that a zksync.AssignTracer is told of. After each gained one of the others comes.
const (
	itemGained = "gained" // its function is about to be called
	itemGiven  = "given up"
	itemDone   = "done"
)

// tell tells the tracer of an event, if it wants to know. err is the error of a run that has failed.
func (a *assignment) tell(ctx context.Context, it *item, l *zksync.Lease, event string, err error) {
	t := a.g.at.Session.Trace()
	if t == nil || t.Assign == nil {
		return
	}
	a.mu.Lock()
	attempt := it.attempt
	a.mu.Unlock()
	t.Assign(ctx, session.Assign{
		Path: a.g.at.Path, Name: a.g.at.Settings.Label, Member: a.m.id, Item: it.name, Event: event,
		Attempt: attempt, Err: err, Token: node.Token(l.Token()),
	})
}
