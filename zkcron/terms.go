package zkcron

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// This file changes the terms of a job. An entry of the job's queue is made only while the job has the terms of its process: the
// transaction checks their version.

// succeed gives the job our terms if its queue is empty: the transaction deletes the queue's directory, which the servers
// refuse while it has an entry. Otherwise it waits until the queue may be empty.
func (r *runner) succeed(ctx context.Context, e *zkconn.Epoch, v record.Version[terms]) error {
	dir := r.terms.Base + queueName
	set := &zk.SetDataRequest{Path: r.terms.Base, Data: record.Encode(r.wants), Version: v.Number}
	queue := &zk.CreateRequest{Path: dir, Acl: r.cron.at.ACL()}
	_, err := node.RepeatTransaction(ctx, e, set, &zk.DeleteRequest{Path: dir, Version: -1}, queue)
	if record.RefusedAt(err, 1, zk.ErrNoNode) { // another program has removed it
		_, err = node.RepeatTransaction(ctx, e, set, queue)
	}
	switch {
	case record.RefusedAt(err, 1, zk.ErrNotEmpty):
		if why, news := r.differs(v.T); news {
			r.cron.at.Log().Once("schedules", r.node).Warn("other processes run the job with another schedule: waiting until they have stopped",
				"job", r.name, "path", r.cron.at.Path, "reason", why)
		}
		return r.idle(ctx, e)
	case record.Conflict(err): // also if the answer was lost and the transaction applied: it is refused at the version
		return nil
	}
	return err
}

// idle waits until the queue may be empty, or the job may have our terms: another process may give it those, and queue itself. So the
// caller looks at everything again. idle watches the last entry and not the queue, because each process that stops would
// wake all that wait. Some servers hide the end of an entry from a session that may not read it, so it ends after a minute.
func (r *runner) idle(ctx context.Context, e *zkconn.Epoch) error {
	entries, err := r.grants.Queue().List(ctx, e)
	if err != nil || len(entries) == 0 {
		return err
	}
	l := record.Hear(e, r.grants.Queue().Dir+"/"+entries[len(entries)-1].Name)
	defer l.Stop()
	_, _, err = l.Next(ctx, time.Minute)
	return err
}

// supersede gives the job our terms, of a greater revision, although other processes queue with the old terms. A process that
// runs a tick ends it, and finds the change at its next write. A process that waits for the time of a tick would find it then,
// perhaps in a week: so the transaction also deletes its entry. The version of the record proves that it has not begun a tick.
func (r *runner) supersede(ctx context.Context, e *zkconn.Epoch, v record.Version[terms]) error {
	ops := []any{&zk.SetDataRequest{Path: r.terms.Base, Data: record.Encode(r.wants), Version: v.Number}}
	data, stat, err := e.Get(ctx, r.terms.Base+recordName)
	if err == nil {
		begun, err := decode(data)
		if err != nil {
			return err
		}
		entries, err := r.grants.Queue().List(ctx, e)
		if err != nil {
			return err
		}
		if len(entries) > 0 && !begun.underWay() {
			ops = append(ops, &zk.CheckVersionRequest{Path: r.terms.Base + recordName, Version: stat.Version},
				&zk.DeleteRequest{Path: r.grants.Queue().Dir + "/" + entries[0].Name, Version: -1})
			why := r.cron.at.Content(node.Content{Reason: "this job has a greater revision there"})
			if said := r.grants.Queue().Because(entries[0], why); said != nil {
				ops = append(ops, said)
			}
		}
	} else if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if _, err = node.RepeatTransaction(ctx, e, ops...); record.Conflict(err) {
		return nil
	}
	return err
}
