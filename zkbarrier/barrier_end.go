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

// A generation ends in a transaction that changes the base node from the version in which the generation
// was open. So it ends once, and one way: all leave, or it is broken.

// ending is a transaction that ends the open generation of state from.
func (b *Barrier) ending(from, to barrierState, how barrierRecord, parties []any) []any {
	g := from.Generation
	ops := []any{
		&zk.SetDataRequest{Path: b.base(), Data: to.encode(), Version: from.version},
		&zk.DeleteRequest{Path: b.open(g), Version: -1}, // before the parties: who hears of both hears of the end first
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

// end commits an ending, and tells for whose sake it was refused. What it would have forgotten may be
// gone already.
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

// refusedOp is the operation for whose sake a transaction was refused; nil for none.
func refusedOp(ops []any, err error) (op any, index int) {
	var refused *zkconn.TxnError
	if !errors.As(err, &refused) || refused.Index < 0 || refused.Index >= len(ops) {
		return nil, -1
	}
	return ops[refused.Index], refused.Index
}

// deletes reports whether op deletes a node whose path begins like that.
func deletes(op any, prefix string) bool {
	r, ok := op.(*zk.DeleteRequest)
	return ok && strings.HasPrefix(r.Path, prefix)
}

// outdated reports whether the servers refused a transaction because things are not as it says.
func outdated(err error) bool {
	var refused *zkconn.TxnError
	return errors.As(err, &refused) &&
		(errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNotEmpty))
}

// release lets the members go: it deletes all nodes of the generation. Deleting a member's node proves that it was there.
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
	if len(g.names) == len(g.all) { // else somebody else has put something there
		ops = append(ops, &zk.DeleteRequest{Path: b.dir(st.Generation), Version: -1})
	}
	return ops
}

// breakUp breaks the generation that is open in st. It is refused if that has ended.
func (b *Barrier) breakUp(ctx context.Context, e *zkconn.Epoch, st barrierState) error {
	ops := b.ending(st, st.broken(), barrierRecord{Broken: true}, nil)
	op, err := b.end(ctx, e, ops)
	if deletes(op, b.open(st.Generation)) && errors.Is(err, zk.ErrNoNode) { // by hand, before
		ops = slices.DeleteFunc(ops, func(op any) bool { return deletes(op, b.open(st.Generation)) })
		_, err = b.end(ctx, e, ops)
	}
	if err == nil {
		b.advance(st, st.broken())
	}
	return err
}

// reset begins the next generation. from is the one in which the call began, or -1.
func (b *Barrier) reset(ctx context.Context, e *zkconn.Epoch, from *int64) error {
	for pace := (node.Pace{Free: 1}); ; {
		st, err := b.learn(ctx, e)
		if err != nil {
			return err
		}
		if *from >= 0 && st.Generation != *from { // done, by us or by others
			b.tidyUp(ctx, e, st.Generation)
			return nil
		}
		*from = st.Generation
		op, err := b.begin(ctx, e, st)
		if deletes(op, b.open(st.Generation)) && errors.Is(err, zk.ErrNoNode) { // by hand: break it first
			err = b.breakUp(ctx, e, st)
		}
		if err != nil && !outdated(err) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// begin ends the generation of st, if it has not ended, and begins the next one.
func (b *Barrier) begin(ctx context.Context, e *zkconn.Epoch, st barrierState) (op any, err error) {
	if !st.Broken {
		return b.end(ctx, e, b.ending(st, st.next(), barrierRecord{Broken: true}, nil))
	}
	_, err = record.Transact(ctx, e, append([]any{
		&zk.SetDataRequest{Path: b.base(), Data: st.next().encode(), Version: st.version},
	}, b.beginning(st.Generation+1)...)...)
	return nil, err
}

// tidyUp removes directories of broken generations whose last party could not do it itself.
// It is a favour: what fails is left for the next time.
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
