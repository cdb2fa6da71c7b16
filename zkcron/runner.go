package zkcron

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// runner is one call of Run, as far as it concerns one job.
type runner struct {
	*job
	cron   *Cron
	node   string // of the job, as the user knows it
	terms  record.Terms[terms]
	grants *share.Unshared

	agreed record.Version[terms] // what the job's node was when it had our terms
}

func newRunner(c *Cron, j *job) *runner {
	r := &runner{job: j, cron: c, node: c.local() + "/" + j.name}
	base := c.at.Full(r.node)
	r.terms = record.Terms[terms]{
		Base: base, ACL: c.at.ACL(), Type: layout.Cron + " job", Keys: []string{"spec", "missed"},
		First: func() (terms, []string) { return j.wants, []string{base + queueName, base + recordName} },
		Check: func(terms) error { return nil }, // they may be changed
	}
	r.grants = share.NewUnshared(c.at, "/"+layout.Cron+"/"+j.name+queueName, zksync.KindLock)
	return r
}

// run holds the lease as often and as long as it can. It returns when ctx ends, or with an error that would come again.
func (r *runner) run(ctx context.Context) error {
	for pace := (node.Pace{Free: 1}); ; {
		l, err := r.obtain(ctx)
		if err != nil {
			return err
		}
		err = (&hold{runner: r, lease: l}).serve(ctx)
		_ = l.UnlockWithin(ctx) // an error says that it was lost, which serve has told
		switch {
		case ctx.Err() != nil:
			return errs.OfContext(ctx)
		case !passing(err):
			return err
		}
		_ = pace.Rest(ctx, nil) // obtain finds out whether ctx has ended
	}
}

// passing reports whether what ended a hold may be different next time: the lease was lost, or somebody has changed the
// nodes by hand.
func passing(err error) bool {
	return errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrReleased) || errors.Is(err, zkconn.ErrOver) ||
		errors.Is(err, errMeddled) || zksync.Ambiguous(err)
}

// obtain waits for the lease of the job. Whoever queues has the terms of the job: they are looked at before, so that a
// process with other terms is refused at once, and again afterwards. The terms change only while nobody queues, so that
// second look is good for as long as the entry exists.
func (r *runner) obtain(ctx context.Context) (*lease.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel(nil)
	if err := r.cron.at.In(ctx, r.join); err != nil {
		return nil, err
	}
	r.grants.Queue().Waits = func(queue.Entry) { // who need not wait looks when it takes the job over
		looking.Go(func() {
			if err := r.cron.at.In(ctx, r.look); err != nil {
				cancel(err)
			}
		})
	}
	l, err := r.grants.Get(ctx, false, r.grants.Queue().Obtain)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, zksync.ErrMisuse) {
		err = cause
	}
	return l, err
}

// look refuses other terms than ours.
func (r *runner) look(ctx context.Context, e *zkconn.Epoch) error {
	v, there, err := r.terms.Peek(ctx, e)
	if err == nil && there && v.T != r.wants {
		return r.differs(v.T)
	}
	return err
}

func (r *runner) differs(other terms) error {
	return fmt.Errorf("%w: job %q: others have it as %s, this process as %s; stop those with the old schedule first, or use another name",
		zksync.ErrMisuse, r.name, record.Encode(other), record.Encode(r.wants))
}

// join makes sure that the job has our terms. It makes the job if there is none, and changes its terms if nobody queues
// for it: the transaction deletes the queue's directory, which the servers refuse while it has an entry.
func (r *runner) join(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 2}); ; {
		v, there, err := r.terms.Peek(ctx, e)
		switch {
		case err != nil:
			return err
		case !there:
			if _, err = r.cron.root.Read(ctx, e); err == nil {
				_, err = r.terms.Make(ctx, e) // the next look tells the time of that
			}
		case v.T == r.wants:
			r.agreed = v
			return nil
		default:
			err = r.change(ctx, e, v)
		}
		if err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// change gives the job our terms, unless they are no longer v. If the answer is lost, it is refused at the version.
func (r *runner) change(ctx context.Context, e *zkconn.Epoch, v record.Version[terms]) error {
	dir := r.terms.Base + queueName
	_, err := record.Transact(ctx, e,
		&zk.SetDataRequest{Path: r.terms.Base, Data: record.Encode(r.wants), Version: v.Number},
		&zk.DeleteRequest{Path: dir, Version: -1},
		&zk.CreateRequest{Path: dir, Acl: r.cron.at.ACL()})
	switch {
	case record.RefusedAt(err, 1, zk.ErrNotEmpty):
		return r.differs(v.T)
	case record.RefusedAt(err, 1, zk.ErrNoNode):
		return node.MakeDir(ctx, e, dir, r.cron.at.ACL())
	case record.Conflict(err):
		return nil
	}
	return err
}
