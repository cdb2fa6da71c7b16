package zkcron

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// runner is one call of Run, as far as it concerns one job.
type runner struct {
	*job
	cron   *Cron
	node   string // of the job, as the user knows it
	terms  record.Terms[terms]
	grants *share.Unshared

	agreed record.Version[terms] // what the job's node was when it had our terms
	others terms                 // the other terms that were found last
}

func newRunner(c *Cron, j *job) *runner {
	r := &runner{job: j, cron: c, node: c.local() + "/" + j.name}
	base := c.at.Full(r.node)
	r.terms = record.Terms[terms]{
		Base: base, ACL: c.at.ACL(), Type: layout.Cron + " job", Keys: []string{"spec", "missed"},
		First: func() (terms, []string) { return j.wants, []string{base + queueName, base + recordName} },
		Check: func(terms) error { return nil }, // they may be changed
	}
	r.grants = share.NewUnshared(c.at, "/"+layout.Cron+"/"+j.name+queueName, queue.KindLock)
	// Every process in the queue has the terms of the job: an entry is made only at their version.
	r.grants.Queue().Base = base
	r.grants.Queue().Check = func() []any {
		return []any{&zk.CheckVersionRequest{Path: base, Version: r.agreed.Number}}
	}
	return r
}

// run has the lease as often and as long as it can. It returns when ctx ends, with an error that would come again, or
// without one if the schedule of this process is out of date.
func (r *runner) run(ctx context.Context) error {
	for pace := (node.Pace{Free: 1}); ; {
		err := r.serve(ctx)
		switch {
		case ctx.Err() != nil:
			return errs.OfContext(ctx)
		case errors.Is(err, errOutdated):
			return nil
		case !passing(err):
			return err
		}
		_ = pace.Rest(ctx, nil) // serve finds out whether ctx has ended
	}
}

// serve waits for the lease of the job, and runs the ticks while it lasts.
func (r *runner) serve(ctx context.Context) error {
	if err := r.cron.at.Run(ctx, "", r.join); err != nil {
		return err
	}
	l, err := r.grants.Get(ctx, false, r.grants.Queue().Obtain)
	if err != nil {
		return err
	}
	err = (&shift{runner: r, lease: l}).serve(ctx)
	_ = l.UnlockWithin(ctx) // an error says that it was lost, which serve knows
	return err
}

// passing reports whether the end of a shift, or the reason why it did not begin, may not occur again: the lease was lost,
// the job has other terms now, or another program has changed its nodes.
func passing(err error) bool {
	return errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrReleased) || errors.Is(err, zkconn.ErrOver) ||
		errors.Is(err, errMeddled) || zksync.Ambiguous(err) || errors.As(err, new(*node.Refused))
}

// join makes sure that the job has our terms. It makes the job if there is none. If the job has other terms, it waits until its
// queue is empty, and then changes them.
func (r *runner) join(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 2}); ; {
		v, there, err := r.terms.Peek(ctx, e)
		switch {
		case err != nil:
			return err
		case !there:
			if _, err = r.cron.root.ReadOrMake(ctx, e); err == nil {
				_, err = r.terms.Make(ctx, e) // the next look has the time of that
			}
		case v.T == r.wants:
			r.agreed = v
			return nil
		case v.T.Revision > r.wants.Revision:
			if why, news := r.differs(v.T); news {
				r.cron.at.Log().Once("revision", r.node).Warn("a later revision of the schedule is in force: this process leaves the job",
					"job", r.name, "path", r.cron.at.Path, "reason", why)
			}
			return errOutdated
		case v.T.Revision < r.wants.Revision:
			err = r.supersede(ctx, e, v)
		default:
			err = r.succeed(ctx, e, v)
		}
		if err != nil {
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// errOutdated means that the job has terms of a greater revision.
var errOutdated = errors.New("the schedule of this process is out of date")

// differs says how other terms of the job differ from ours. news is false if the last call was about the same.
func (r *runner) differs(other terms) (why string, news bool) {
	news = r.others != other
	r.others = other
	return fmt.Sprintf("in force: %s; here: %s", record.Encode(other), record.Encode(r.wants)), news
}
