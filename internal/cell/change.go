package cell

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Plan computes a change.
type Plan interface {
	// Compute returns what comes after now; with an error it is not written. It is called again after a refusal. current
	// says that now was read after a refusal, and that the change began before that. Without it, if nothing must be
	// written, the servers are asked whether now is still the content.
	Compute(now Content, current bool) (Next, error)
	// Unwritten is called when nothing was written, and nothing of this attempt will be written later.
	Unwritten()
}

// Next is what a change makes of the content.
type Next struct {
	Content
	Write  bool // it must be written
	Blind  bool // it is the same whatever the content is now
	Always bool // it is written also if the content is the same: the version must change
}

// Change makes a change that is computed from the value. At first it sends what it has computed from the newest state
// that it knows. If the servers refuse that, it reads, and computes again; and at last in its turn: see package gate.
func (c *Cell) Change(ctx context.Context, e *zkconn.Epoch, p Plan) error {
	s, err := c.present(ctx, e)
	if err != nil {
		return err
	}
	pass := c.gate.Pass(ctx, e)
	defer pass.Leave()
	for refused := false; pass.Next(unchecked(s)); refused = true {
		current := refused && !pass.Anew && pass.Epoch == e // see Plan
		if e = pass.Epoch; refused || pass.Anew {
			if s, err = c.fresh(ctx, e); err != nil {
				return err
			}
		}
		var next Next
		var failed error
		pass.While(func() { next, failed = p.Compute(s.Content, current) })
		if next.Write = next.Write && failed == nil; next.Write && !next.Blind && !next.Always && next.Content.equal(s.Content) {
			next.Write = false // no watcher need be woken
			p.Unwritten()
		}
		switch {
		case !next.Write && current:
			return failed
		case !next.Write:
			if err = c.confirm(ctx, e, s); err == nil {
				return failed
			}
		case unchecked(s) && !next.Blind && !pass.Closed():
			err = gate.ErrRefused
		default:
			err = c.write(pass, s, next)
		}
		if err != nil && !errs.Ambiguous(err) {
			p.Unwritten()
		}
		pass.Err = err
	}
	return pass.Err
}

// write makes next the content, together with what the type wants to write in addition, if the state is still was; or
// whatever the state is, if next does not depend on it.
func (c *Cell) write(pass *gate.Pass, was state, next Next) error {
	written := func(*zkconn.Epoch, int64) {}
	if c.Spare != nil {
		next.Content, written = c.Spare(next.Content)
	}
	ops := c.ops(was, next)
	res, err := c.At.Apply(pass.Context, pass.Epoch, record.WritersOf(c.base, was.life), pass.With(ops)...)
	res, err = pass.Outcome(len(ops), res, err)
	switch {
	case record.Conflict(err):
		return gate.ErrRefused
	case errors.Is(err, zk.ErrNoNode): // the directory of the writers
		now, there, err := c.look(pass.Context, pass.Epoch)
		if err == nil && there && now.Founded == was.Founded {
			return c.removed()
		}
		return cmp.Or(err, gate.ErrRefused)
	case err != nil:
		return err
	}
	// Without an answer the version is this one at least. If it is a later one, a change that is computed from this is refused.
	now := state{next.Content, was.life}
	now.Version, now.Founded = int64(zkconn.NextVersion(int32(was.Version))), was.Founded
	switch {
	case len(res) > 0 && res[0].Stat != nil:
		now.Version, now.Founded = int64(res[0].Stat.Version), res[0].Stat.Czxid
	case next.Blind, was.Founded == 0: // others may have changed it many times since was; and StoreIf must know which cell it was
		// The refusal that has shown that the change was applied came from the leader, so this server has it by now. If the look
		// fails, the version above must do: then a server that lags may yet show what was there before.
		_, _, _ = c.look(pass.Context, pass.Epoch)
	}
	c.learn(now)
	written(pass.Epoch, now.Founded)
	return nil
}

// ops are the operations that write the content. The first one sets the data.
func (c *Cell) ops(was state, next Next) []any {
	set := &zk.SetDataRequest{Path: c.Node(), Data: next.Data, Version: int32(was.Version)}
	if next.Blind {
		set.Version = -1
	}
	ops := []any{set}
	switch {
	case was.OK && !next.OK:
		ops = append(ops, &zk.CreateRequest{Path: c.absent(), Acl: c.At.ACL()})
	case !was.OK && next.OK:
		ops = append(ops, &zk.DeleteRequest{Path: c.absent(), Version: -1})
	case next.Blind && next.OK && c.empty: // the servers refuse it if there is no value any more
		ops = append(ops, &zk.CreateRequest{Path: c.absent(), Acl: c.At.ACL()}, &zk.DeleteRequest{Path: c.absent(), Version: -1})
	}
	return ops
}

// unchecked reports whether the servers cannot check the version of this state: after 4294967295 changes it is -1,
// which they take for any. A change then closes the gate, so that there is one at a time.
func unchecked(s state) bool { return s.Version == -1 }

// confirm asks whether the state is still s. The request is refused by the leader, so a read after
// the refusal shows at least what the leader knew then.
func (c *Cell) confirm(ctx context.Context, e *zkconn.Epoch, s state) error {
	if unchecked(s) {
		if err := record.Synced(ctx, e, c.Node()); err != nil {
			return err
		}
		return gate.ErrRefused
	}
	ops := []any{&zk.CheckVersionRequest{Path: c.Node(), Version: int32(s.Version)}}
	if s.life != "" { // a later cell may have had this version, too
		ops = append(ops, &zk.CheckVersionRequest{Path: record.WritersOf(c.base, s.life), Version: -1})
	}
	_, err := node.RepeatTransaction(ctx, e, ops...)
	if record.Conflict(err) {
		return gate.ErrRefused
	}
	return err
}
