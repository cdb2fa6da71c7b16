package cell

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// errChanged means that a change was refused, because the state was not the one that it was computed from.
var errChanged = errors.New("the value has changed")

// write makes next the content, if the state is still was.
func (c *Cell) write(ctx context.Context, e *zkconn.Epoch, was state, next Content, turn *queue.Ticket) error {
	ops := []any{&zk.SetDataRequest{Path: c.Node(), Data: next.Data, Version: was.version}}
	switch {
	case was.OK && !next.OK:
		ops = append(ops, &zk.CreateRequest{Path: c.absent(), Acl: c.At.ACL()})
	case !was.OK && next.OK:
		ops = append(ops, &zk.DeleteRequest{Path: c.absent(), Version: -1})
	}
	if unchecked(was) {
		ops = append(ops, &zk.CheckVersionRequest{Path: turn.Node, Version: -1})
	}
	res, err := c.At.Apply(ctx, e, c.writers(), ops...)
	switch {
	case record.Conflict(err):
		return errChanged
	case errors.Is(err, zk.ErrNoNode): // the directory of the writers
		now, there, err := c.look(ctx, e)
		if err == nil && there && now.founded == was.founded {
			return errRemoved
		}
		return cmp.Or(err, errChanged)
	case err != nil:
		return err
	}
	now := state{next, was.version + 1, was.founded}
	if len(res) > 0 && res[0].Stat != nil {
		now.version, now.founded = res[0].Stat.Version, res[0].Stat.Czxid
	}
	c.learn(now)
	return nil
}

// unchecked reports whether the servers cannot check the version of this state: after 4294967295 changes it is -1,
// which they take for any. Whoever changes the value then does so in the queue, and its transaction checks that it is
// still there. So there is one at a time.
func unchecked(s state) bool { return s.version == -1 }

// confirm asks whether the state is still s. The request is refused by the leader, so a read after
// the refusal tells at least what the leader knew then.
func (c *Cell) confirm(ctx context.Context, e *zkconn.Epoch, s state) error {
	if unchecked(s) {
		if err := record.Synced(ctx, e, c.Node()); err != nil {
			return err
		}
		return errChanged
	}
	_, err := record.Transact(ctx, e, &zk.CheckVersionRequest{Path: c.Node(), Version: s.version})
	if record.Conflict(err) {
		return errChanged
	}
	return err
}

// Plan computes a change.
type Plan interface {
	// Compute returns the content after now, and whether it must be written; it must not with an error. It is called again
	// after a refusal. current says that now was read after a refusal, and that the change began before that. Without it, if
	// nothing must be written, the servers are asked whether now is still the content.
	Compute(now Content, current bool) (next Content, write bool, err error)
	// Unwritten is called when nothing was written, and nothing of this attempt will be written later.
	Unwritten()
}

// refusals is how many a process bears before it queues.
const refusals = 2

// Change makes a change that is computed from the value. At first it sends what it has computed from the newest state
// that it knows. If the servers refuse that twice, many processes change the value, and all but one of those that
// send at the same time are refused each time. So it queues for one write. An object that found others in the queue
// queues at once the next time.
func (c *Cell) Change(ctx context.Context, e *zkconn.Epoch, p Plan) error {
	c.mu.Lock()
	queues := c.contended
	c.mu.Unlock()
	s, err := c.present(ctx, e)
	if err != nil {
		return err
	}
	var turn *queue.Ticket
	current := false // see Plan
	for n, pace := 1, (node.Pace{Free: 2 * refusals}); ; n++ {
		if queues = queues || n > refusals || unchecked(s); queues && turn == nil {
			others := false
			if turn, others, err = c.turn(ctx); err != nil {
				return err
			}
			defer turn.Leave(queue.Unawaited)
			if e, current = turn.Epoch, false; others {
				if s, err = c.fresh(ctx, e); err != nil {
					return err
				}
			}
		}
		next, write, failed := p.Compute(s.Content, current)
		if !write && current {
			return failed
		}
		if write {
			err = c.writeSpare(ctx, e, s, next, turn)
		} else if err = c.confirm(ctx, e, s); err == nil {
			return failed
		}
		if err != nil && !errs.Ambiguous(err) {
			p.Unwritten()
		}
		if !errors.Is(err, errChanged) {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
		if s, err = c.fresh(ctx, e); err != nil {
			return err
		}
		current = true
	}
}

// writeSpare is write, and what the type wants to write in addition.
func (c *Cell) writeSpare(ctx context.Context, e *zkconn.Epoch, was state, next Content, turn *queue.Ticket) error {
	written := func() {}
	if c.Spare != nil {
		next, written = c.Spare(next)
	}
	err := c.write(ctx, e, was, next, turn)
	if err == nil {
		written()
	}
	return err
}

// turn queues, and reports whether others were there.
func (c *Cell) turn(ctx context.Context) (t *queue.Ticket, others bool, err error) {
	q := *c.turns
	q.Waits = func(queue.Entry) { others = true }
	if t, err = q.Obtain(ctx, (*queue.Ticket).Forget); err != nil {
		return nil, false, err
	}
	c.mu.Lock()
	c.contended = others
	c.mu.Unlock()
	return t, others, nil
}
