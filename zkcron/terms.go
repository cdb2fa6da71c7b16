package zkcron

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// This file changes the terms of a job that other processes may have with other ones. An entry of the job's queue is made
// only while the job has the terms of its process: the transaction checks their version.

// succeed gives the job our terms if nobody queues for it: the transaction deletes the queue's directory, which the
// servers refuse while it has an entry. Else it waits until the queue may be empty.
func (r *runner) succeed(ctx context.Context, e *zkconn.Epoch, v record.Version[terms]) error {
	dir := r.terms.Base + queueName
	set := &zk.SetDataRequest{Path: r.terms.Base, Data: record.Encode(r.wants), Version: v.Number}
	queue := &zk.CreateRequest{Path: dir, Acl: r.cron.at.ACL()}
	_, err := record.Transact(ctx, e, set, &zk.DeleteRequest{Path: dir, Version: -1}, queue)
	if record.RefusedAt(err, 1, zk.ErrNoNode) { // somebody has removed it: nobody queues
		_, err = record.Transact(ctx, e, set, queue)
	}
	switch {
	case record.RefusedAt(err, 1, zk.ErrNotEmpty):
		r.log("other processes run the job with another schedule: waiting until they have stopped", v.T)
		return r.idle(ctx, e)
	case record.Conflict(err): // also if the answer was lost and the transaction applied: it is refused at the version
		return nil
	}
	return err
}

// idle waits until the queue may be empty, or the job may have our terms: another process that waited may have given it those, and
// queue itself. So the caller looks at everything again. It watches the last in the queue, and not the queue: many may wait, and
// each process that stops would wake them all. Some servers tell nothing to one that may not read the entry, so it
// looks again after a while.
func (r *runner) idle(ctx context.Context, e *zkconn.Epoch) error {
	entries, err := r.grants.Queue().List(ctx, e)
	if err != nil || len(entries) == 0 {
		return err
	}
	changed := make(chan struct{})
	w, err := e.Watch(ctx, r.grants.Queue().Dir+"/"+entries[len(entries)-1].Name, func(zkconn.Event) { close(changed) })
	switch {
	case errors.Is(err, zk.ErrNoNode), zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return nil
	case err != nil:
		return err
	}
	defer e.Unwatch(w)
	again := time.NewTimer(time.Minute)
	defer again.Stop()
	select {
	case <-changed:
		return nil
	case <-again.C:
		return nil
	case <-e.Over():
		return zkconn.ErrOver
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// supersede gives the job our terms, of a greater revision, whoever queues for it. Those have the old terms. One that
// runs a tick ends it, and finds the change at its next write. One that waits for the time of a tick would find it then,
// perhaps in a week: so its entry is deleted with the change, and it looks at the terms when it hears of that. The
// version of the record tells that it has not begun a tick meanwhile.
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
		if len(entries) > 0 && !begun.unfinished() {
			ops = append(ops, &zk.CheckVersionRequest{Path: r.terms.Base + recordName, Version: stat.Version},
				&zk.DeleteRequest{Path: r.grants.Queue().Dir + "/" + entries[0].Name, Version: -1})
		}
	} else if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if _, err = record.Transact(ctx, e, ops...); record.Conflict(err) {
		return nil
	}
	return err
}
