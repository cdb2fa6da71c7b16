package node

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Repeat is the loop of a request that may be applied twice. It sends the request until its outcome is known:
//
//	for r := node.Insist(ctx, e); r.Next(); {
//		res, r.Err = e.StartMulti(ops...).Wait(ctx, e)
//	}
//
// Before each attempt it waits for a connection. There is another attempt after an answer that leaves the outcome open, after
// zkconn.ErrNotSent and after ErrAgain, after a pause; the first ErrAgain needs none. It ends with ctx, and with
// the session of e (zkconn.ErrOver).
type Repeat struct {
	Err error // of the newest attempt; in the end that of the loop

	ctx         context.Context
	e           *zkconn.Epoch
	begun       bool
	lost, again Pace
}

// ErrAgain means that nothing was changed, and that another attempt makes sense.
var ErrAgain = errors.New("again")

// Insist begins such a loop.
func Insist(ctx context.Context, e *zkconn.Epoch) *Repeat {
	return &Repeat{ctx: ctx, e: e, again: Pace{Free: 1}}
}

// Next reports whether there is to be another attempt.
func (r *Repeat) Next() bool {
	if r.begun {
		pace := &r.lost
		switch {
		case errors.Is(r.Err, zk.ErrSessionExpired):
			r.Err = zkconn.ErrOver
			return false
		case errors.Is(r.Err, ErrAgain):
			pace = &r.again
		case !zkconn.Unknown(r.Err) && !errors.Is(r.Err, zkconn.ErrNotSent):
			return false
		}
		if r.Err = pace.Rest(r.ctx, r.e); r.Err != nil {
			return false
		}
	}
	r.begun = true
	r.Err = r.e.Await(r.ctx)
	return r.Err == nil
}

// RepeatTransaction repeats a transaction until its outcome is known. If the transaction was applied before, the servers must
// refuse it, or it must change nothing: see package record. A change that is applied at most once is writers.Writers.Apply.
func RepeatTransaction(ctx context.Context, e *zkconn.Epoch, ops ...any) (res []zk.MultiResponse, err error) {
	res, _, err = repeat(ctx, e, ops)
	return res, err
}

// RepeatChange is RepeatTransaction for a change that the user has asked for: if the loop ends before it is known whether the
// change was applied, the error is ambiguous. A refusal is ambiguous too if an earlier attempt may have been applied: the
// caller must find that out.
func RepeatChange(ctx context.Context, e *zkconn.Epoch, ops ...any) ([]zk.MultiResponse, error) {
	res, doubt, err := repeat(ctx, e, ops)
	return res, errs.InDoubt(err, doubt)
}

// repeat is RepeatTransaction. doubt means that the transaction may have been applied, although there is an error.
func repeat(ctx context.Context, e *zkconn.Epoch, ops []any) (res []zk.MultiResponse, doubt bool, err error) {
	r := Insist(ctx, e)
	for r.Next() {
		call := e.StartMulti(ops...)
		res, r.Err = call.Wait(ctx, e)
		answered := call.Answered()
		if answered {
			res, r.Err = call.Result() // also if ctx ended at the very same time
		}
		doubt = !answered || zkconn.Unknown(r.Err) || doubt && r.Err != nil
	}
	return res, doubt, r.Err
}
