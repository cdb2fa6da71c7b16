// Package gate bounds how often a change is refused because others change the same thing at the same time.
//
// A change is computed from what was read, and the servers refuse it if that has changed since. But a process that is far from
// the servers is refused each time, as long as one that is near them never pauses. To queue does not help it: the near one
// is never refused, so it never queues.
//
// # The rule
//
// The gate is a node. It exists while the gate is open.
//
//   - A change outside the queue checks in its transaction that the gate is open.
//   - A change that was refused twice, or has found the gate closed, queues.
//   - In its turn a change need not find the gate open. It makes one more attempt. If that is refused, too, it
//     closes the gate, reads, and makes the change and the gate in one transaction.
//   - A change that has found the gate closed makes the node when its turn has come: the process that closed it may have died.
//
// # Why every call ends
//
// When the servers have closed the gate, they refuse all transactions from outside the queue, and in the queue only the
// first sends any. So nothing changes between its read, which follows the closing on the same connection, and
// its transaction: that is not refused. So a turn takes four requests at most, and a call ends after two attempts of its own, the
// turns of those ahead of it, and its own turn, however near the others are.
//
// There are three exceptions. A session that dies in its turn delays the others until the servers end it, as with a lock. A
// function of the user that takes longer than [Patience] loses the turn, because it may be waiting for another call that queues
// behind it; it may be called again and again as long as others make changes. And processes of older versions ignore the gate.
//
// The gate is for progress only. Each change must be right without it: its transaction checks what it was computed from.
// Without the node, which older versions did not make, the gate is closed until the first change has made it.
package gate

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Gate is a gate, as one object of a process uses it. It is safe for use by many goroutines.
type Gate struct {
	Node string // exists while the gate is open
	ACL  []zk.ACL
	Line *queue.Queue

	contended atomic.Bool // another process was in the queue when this one last entered it
}

// ErrRefused means that a change was refused because another was quicker, or has the turn.
var ErrRefused = errors.New("another process has made a change")

// refusals is how often a change is refused before it queues.
const refusals = 2

// Patience is how long a function of the user may take in its turn.
const Patience = time.Second

// Pass is the way of one change through the gate: a loop of attempts.
//
//	p := g.Pass(ctx, e)
//	defer p.Leave()
//	for p.Next(false) {
//		res, p.Err = apply(p.Epoch, p.With(ops)...)
//		res, p.Err = p.Outcome(len(ops), res, p.Err)
//	}
//	return p.Err
type Pass struct {
	context.Context
	Epoch *zkconn.Epoch // the session for the attempt
	Anew  bool          // what the change depends on must be read again
	Err   error         // of the newest attempt: after [ErrRefused] there is another one

	g       *Gate
	pace    node.Pace
	begun   bool
	refused int           // how often, since the beginning or since it has its turn
	shut    bool          // the gate was found closed
	turn    *queue.Ticket // nil outside the queue
	closed  bool          // the gate, in this turn, by this pass
}

// Pass begins a change. The caller must call Leave in the end.
func (g *Gate) Pass(ctx context.Context, e *zkconn.Epoch) *Pass {
	return &Pass{g: g, Context: ctx, Epoch: e, pace: node.Pace{Free: 4}}
}

// Next reports whether there is to be another attempt. It waits for the turn, and closes the gate, when that is time; with
// alone at once.
func (p *Pass) Next(alone bool) bool {
	if p.begun {
		if !errors.Is(p.Err, ErrRefused) {
			return false
		}
		// If this pass had closed the gate, it was opened since, or the record was removed.
		p.refused, p.closed = p.refused+1, false
		if p.Err = p.pace.Rest(p.Context, p.Epoch); p.Err != nil {
			return false
		}
	}
	p.begun, p.Anew = true, false
	p.Err = p.admit(alone)
	return p.Err == nil
}

func (p *Pass) admit(alone bool) error {
	for {
		if p.turn == nil {
			if !alone && !p.shut && p.refused < refusals && !p.g.contended.Load() {
				return nil
			}
			others, err := p.queue()
			if errors.As(err, new(*node.Refused)) { // the record was removed; the attempt creates it again
				p.refused, p.shut, p.Anew = 0, false, true
				return nil
			}
			if err != nil {
				return err
			}
			p.Anew = p.Anew || others || p.shut
			if p.shut {
				p.open()
			}
			p.refused, p.shut = 0, false
		}
		if p.closed || !alone && p.refused == 0 {
			p.Epoch = p.turn.Epoch
			return nil
		}
		lost, err := p.close()
		if err != nil {
			return err
		}
		p.Anew = true
		if !lost {
			p.Epoch = p.turn.Epoch
			return nil
		}
		p.Leave() // the entry was removed externally: queue again
		p.refused = refusals
	}
}

// queue waits for the turn, and reports whether others were there. An object that found others in the queue queues at once the
// next time: where many make changes, all but one of those that are sent at the same time are refused.
func (p *Pass) queue() (others bool, err error) {
	q := *p.g.Line
	q.Waits = func(queue.Entry) { others = true }
	if p.turn, err = q.Obtain(p.Context, nil); err != nil {
		return false, err
	}
	p.g.contended.Store(others && !p.shut)
	return others, nil
}

// inTurn is the operation that the servers refuse when this is not the turn of the pass any more, so that what it does to the
// gate is not done later.
func (p *Pass) inTurn() any { return &zk.CheckVersionRequest{Path: p.turn.Node, Version: -1} }
func (p *Pass) make() any   { return &zk.CreateRequest{Path: p.g.Node, Acl: p.g.ACL} }

// close closes the gate. lost says that the turn was lost.
func (p *Pass) close() (lost bool, err error) {
	_, err = node.RepeatTransaction(p.Context, p.turn.Epoch, p.inTurn(), &zk.DeleteRequest{Path: p.g.Node, Version: -1})
	switch {
	case record.RefusedAt(err, 0, zk.ErrNoNode):
		return true, nil
	case err != nil && !record.RefusedAt(err, 1, zk.ErrNoNode):
		return false, err
	}
	p.closed = true
	return false, nil
}

// open opens the gate, if it is closed. It does not wait for the answer: if the request is lost, whoever finds the gate
// closed opens it.
func (p *Pass) open() {
	p.turn.Epoch.StartMulti(p.inTurn(), p.make())
	p.closed = false
}

// Closed reports whether no other process can make a change.
func (p *Pass) Closed() bool { return p.closed }

// With returns the operations of an attempt and those of the gate, which come last: so the results and the index of a refused
// operation are right for ops.
func (p *Pass) With(ops []any) []any {
	switch {
	case p.closed:
		return append(ops, p.inTurn(), p.make())
	case p.turn == nil:
		return append(ops, &zk.CheckVersionRequest{Path: p.g.Node, Version: -1})
	}
	return ops
}

// Outcome is the outcome of a transaction for its first n operations, without those that With has added. The error is
// ErrRefused if these n alone would not have been refused, but the gate is closed.
func (p *Pass) Outcome(n int, res []zk.MultiResponse, err error) ([]zk.MultiResponse, error) {
	var refused *zkconn.TxnError
	switch {
	case err == nil:
		p.closed = false
		return res[:min(n, len(res))], nil
	case !errors.As(err, &refused) || refused.Index < n || !record.Conflict(err):
		return nil, err
	case p.turn == nil:
		p.shut = true
	default: // the entry was removed externally, or the gate made: queue again
		p.closed = false
		p.Leave()
	}
	return nil, ErrRefused
}

// While runs a function that may be the user's.
func (p *Pass) While(f func()) {
	if p.turn != nil {
		left := make(chan struct{})
		t := time.AfterFunc(Patience, func() { p.Leave(); close(left) })
		defer func() {
			if !t.Stop() {
				<-left
			}
		}()
	}
	f()
}

// Leave ends the turn, if there is one. It does not wait for the servers.
func (p *Pass) Leave() {
	if p.turn == nil {
		return
	}
	if p.closed {
		p.open()
	}
	p.turn.Leave(queue.Unawaited)
	p.turn, p.refused, p.shut = nil, 0, false
}
