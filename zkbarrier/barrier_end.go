package zkbarrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A generation ends in one transaction, which changes the base node from the version in which the generation was
// open. So it ends once, and in one way: all parties leave, or it is broken.

// ending is the transaction that ends the open generation of the state from. to is the state after that, and how is
// the record of the end. parties is the part that deletes the nodes of the parties that leave.
func (b *Barrier) ending(from, to barrierState, how barrierRecord, parties []any) []any {
	g := from.Generation
	ops := []any{
		&zk.SetDataRequest{Path: b.base(), Data: to.encode(), Version: from.version},
		// Before the nodes of the parties: events come in this order, so a party that watches both hears of the end
		// first, and does not take its neighbor for dead.
		&zk.DeleteRequest{Path: b.open(g), Version: -1},
	}
	ops = append(ops, parties...)
	ops = append(ops,
		&zk.CreateRequest{Path: b.ended(g), Data: record.Encode(how), Acl: b.at.ACL()})
	if g >= remembered {
		ops = append(ops, &zk.DeleteRequest{Path: b.ended(g - remembered), Version: -1})
	}
	if to.Generation > g {
		ops = append(ops, b.beginning(to.Generation)...)
	}
	return ops
}

// end makes the transaction of an ending. If the servers refuse it, end returns the operation that they refused. The
// old record that the transaction removes may be gone already; then end makes the transaction without that.
func (b *Barrier) end(ctx context.Context, e *zkconn.Epoch, ops []any) (op any, err error) {
	_, err = record.Transact(ctx, e, ops...)
	op, at := refusedOp(ops, err)
	if deletes(op, b.base()+"/ended-") && errors.Is(err, zk.ErrNoNode) {
		ops = slices.Delete(ops, at, at+1)
		_, err = record.Transact(ctx, e, ops...)
		op, _ = refusedOp(ops, err)
	}
	return op, err
}

// refusedOp is the operation because of which the servers refused a transaction,
// and its index; nil and -1 if there is none.
func refusedOp(ops []any, err error) (op any, index int) {
	var refused *zkconn.TxnError
	if !errors.As(err, &refused) || refused.Index < 0 || refused.Index >= len(ops) {
		return nil, -1
	}
	return ops[refused.Index], refused.Index
}

// deletes reports whether op deletes a node whose path begins with prefix.
func deletes(op any, prefix string) bool {
	r, ok := op.(*zk.DeleteRequest)
	return ok && strings.HasPrefix(r.Path, prefix)
}

// outdated reports whether the servers refused a transaction because the nodes are not as it expects.
func outdated(err error) bool {
	var refused *zkconn.TxnError
	return errors.As(err, &refused) &&
		(errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNotEmpty))
}

// release is the transaction that lets the members of g leave. It deletes all nodes of the generation. The servers
// refuse it if one of these nodes is gone, so every member was there until it left.
func (b *Barrier) release(st barrierState, g gathering) []any {
	dir := b.dir(st.Generation) + "/"
	ids := make([]string, b.parties)
	for i, m := range g.parties[:b.parties] {
		ids[i] = m.attempt
	}
	var ops []any
	for _, a := range g.all {
		ops = append(ops, &zk.DeleteRequest{Path: dir + a.name, Version: -1})
	}
	ops = b.ending(st, st.next(), barrierRecord{Passed: ids}, ops)
	if len(g.names) == len(g.all) { // otherwise somebody else has made a node there, and the directory is not empty
		ops = append(ops, &zk.DeleteRequest{Path: b.dir(st.Generation), Version: -1})
	}
	return ops
}

// breakUp breaks the generation that is open in st. The servers refuse it if that generation has ended.
func (b *Barrier) breakUp(ctx context.Context, e *zkconn.Epoch, st barrierState, why breach) error {
	ops := b.ending(st, st.broken(), barrierRecord{Broken: true, breach: why}, nil)
	op, err := b.end(ctx, e, ops)
	if deletes(op, b.open(st.Generation)) && errors.Is(err, zk.ErrNoNode) { // somebody deleted it by hand before
		ops = slices.DeleteFunc(ops, func(op any) bool { return deletes(op, b.open(st.Generation)) })
		_, err = b.end(ctx, e, ops)
	}
	if err == nil {
		b.advance(st, st.broken())
	}
	return err
}

// reset begins the next generation. from is the generation that was the present one when the call began; -1 if the
// call has not read it yet. So a reset that continues in another session does not reset twice.
func (b *Barrier) reset(ctx context.Context, e *zkconn.Epoch, from *int64) error {
	for pace := (node.Pace{Free: 1}); ; {
		st, err := b.learn(ctx, e)
		if err != nil {
			return err
		}
		if *from >= 0 && st.Generation != *from { // this call or another has reset it
			b.tidyUp(ctx, e, st.Generation)
			return nil
		}
		*from = st.Generation
		why := breach{Why: Reset, By: b.self()}
		if !st.Broken {
			why = b.attended(ctx, e, st, why)
		}
		op, err := b.begin(ctx, e, st, why)
		if deletes(op, b.open(st.Generation)) && errors.Is(err, zk.ErrNoNode) { // by hand: break it first
			err = b.breakUp(ctx, e, st, why)
		}
		if err != nil && !outdated(err) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// begin begins the next generation after that of st, and ends the latter if it has not ended.
func (b *Barrier) begin(ctx context.Context, e *zkconn.Epoch, st barrierState, why breach) (op any, err error) {
	if !st.Broken {
		return b.end(ctx, e, b.ending(st, st.next(), barrierRecord{Broken: true, breach: why}, nil))
	}
	_, err = record.Transact(ctx, e, append([]any{
		&zk.SetDataRequest{Path: b.base(), Data: st.next().encode(), Version: st.version},
	}, b.beginning(st.Generation+1)...)...)
	return nil, err
}

// tidyUp removes directories of broken generations that their last party could not
// remove. What fails is left for the next Reset.
func (b *Barrier) tidyUp(ctx context.Context, e *zkconn.Epoch, current int64) {
	names, _, err := e.Children(ctx, b.base())
	if err != nil {
		return
	}
	for _, n := range names {
		var g int64
		if _, err := fmt.Sscanf(n, "parties-%d", &g); err == nil && g < current {
			_ = e.Delete(ctx, b.dir(g))
		}
	}
}
