package zkshard

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Path is the path of the record of an ensemble, below the chroot.
const Path = "/shards"

// ensemble is one of those that a process is connected with.
type ensemble struct {
	shards  *Shards
	servers string
	s       *session.Session
	opened  chan struct{} // closed when at and record are set
	at      *session.Access
	record  record.Terms[terms]

	// Guarded by shards.mu.
	name  string
	read  bool             // the name was read there; else it was taken from the lists of others
	up    bool             // the first session was admitted
	err   error            // of the first session; or why it is not admitted yet
	waits *record.Listener // of the admit that runs
}

// open begins to connect.
func (x *ensemble) open() error {
	if err := x.s.Open(); err != nil {
		return err
	}
	x.at = session.NewAccess[session.Option]("zkshard", x.s, Path, nil)
	x.record = record.Terms[terms]{
		Base: x.s.Full(Path) + "/" + layout.Shards, ACL: x.at.ACL(), Type: layout.Shards,
		Keys:  []string{"name", "generation", "stage"},
		First: func() (terms, []string) { return terms{Name: node.NewUUID(), Stage: named}, nil },
		Check: func(terms) error { return nil },
	}
	close(x.opened)
	return nil
}

// admission enters the process on an ensemble in one ZooKeeper session.
type admission struct {
	*ensemble
	e       *zkconn.Epoch
	l       *record.Listener
	id      string    // of the process's node
	synced  bool      // the record was read from a server that had caught up with the leader
	watched bool      // by l
	until   time.Time // when a refusal that may cease is final; zero before there was one
	missing int32     // the version of the record whose directory was missing
	pace    node.Pace // of steps that others have taken meanwhile
}

// admit is called in each ZooKeeper session before any call may begin there.
func (x *ensemble) admit(ctx context.Context, _ *session.Session, e *zkconn.Epoch) error {
	<-x.opened
	a := &admission{ensemble: x, e: e, l: record.Hear(e), id: node.NewUUID(), missing: -1, pace: node.Pace{Free: 4}}
	defer a.l.Stop()
	x.shards.under(func() { x.waits = a.l })
	defer x.shards.under(func() { x.waits = nil })
	for ; ; a.synced = true {
		read := x.record.ReadOrMake
		if a.synced {
			read = x.record.Latest
		}
		v, err := read(ctx, e)
		if err != nil {
			return err
		}
		if in, err := a.take(ctx, v); in || err != nil {
			return err
		}
	}
}

// take takes the step that the record asks for, or waits until there may be another one. in says that the process has entered.
func (a *admission) take(ctx context.Context, v record.Version[terms]) (in bool, err error) {
	s, err := a.shards.step(a.ensemble, v.T)
	for ; err == nil && s == (step{}); s, err = a.shards.step(a.ensemble, v.T) { // what other ensembles say comes first
		heard, _, err := a.l.Next(ctx, a.e.Timeout()/4)
		if a.watched = a.watched && heard != a.record.Base; err != nil || heard != others {
			return false, err
		}
	}
	switch {
	case err != nil:
		return false, err
	case s.enter != "":
		return a.enter(ctx, v, s.enter)
	case s.next == nil:
		return false, a.wait(ctx, s)
	}
	switch err := a.change(ctx, a.e, v.Number, s); {
	case errors.Is(err, zk.ErrNotEmpty): // the directory of an earlier move
		return false, a.wait(ctx, step{mayCease: true, err: errs.Misuse("processes of another move still run: two moves at once might wait for each other")})
	case record.Conflict(err):
		return false, a.pace.Rest(ctx, a.e)
	default:
		return false, err
	}
}

// enter creates the node of the process.
func (a *admission) enter(ctx context.Context, v record.Version[terms], dir string) (in bool, err error) {
	_, err = node.RepeatTransaction(ctx, a.e, &zk.CreateRequest{
		Path: a.record.Base + "/" + dir + "/" + a.id, Data: a.at.Owner(), Acl: a.at.ACL(), Flags: zk.FlagEphemeral,
	})
	switch {
	case err == nil, record.RefusedAt(err, 0, zk.ErrNodeExists): // this very request had created it, and arrived twice
		return true, nil
	case !record.RefusedAt(err, 0, zk.ErrNoNode):
		return false, err
	case a.missing == v.Number: // else the stage has changed since the record was read
		return false, errs.Broken("the record of the shards", "%s was removed externally", errs.ShowPath(a.s.Local(a.record.Base)+"/"+dir))
	}
	a.missing = v.Number
	return false, a.pace.Rest(ctx, a.e)
}

// change changes the record, and the directories with it. If the request arrives twice, the version refuses the second.
func (x *ensemble) change(ctx context.Context, e *zkconn.Epoch, version int32, s step) error {
	ops := []any{&zk.SetDataRequest{Path: x.record.Base, Data: record.Encode(*s.next), Version: version}}
	if s.remove != "" {
		ops = append(ops, &zk.DeleteRequest{Path: x.record.Base + "/" + s.remove, Version: -1})
	}
	if s.add != "" {
		ops = append(ops, &zk.CreateRequest{Path: x.record.Base + "/" + s.add, Acl: x.at.ACL()})
	}
	_, err := node.RepeatTransaction(ctx, e, ops...)
	if err == nil && s.next.Stage == opened && len(s.next.From) > 0 {
		x.s.Log().Once("shards open", "").Info("an ensemble is open for a new list", "server", x.servers, "reason", show(s.next.From)+" is used no longer")
	}
	return err
}

// others is what a listener is told when more is known of other ensembles.
const others = "others"

// wait waits until another step may be possible: the record has changed, or what is known of other ensembles. The error is a
// refusal that stands: at once, or after the time in which a session may live on whose process has died.
func (a *admission) wait(ctx context.Context, s step) error {
	switch now := time.Now(); {
	case !s.mayCease && a.synced:
		return s.err
	case a.until.IsZero():
		a.until = now.Add(a.e.Timeout() * 3 / 2)
	case !now.Before(a.until):
		return s.err
	}
	a.shards.under(func() { a.err = s.err })
	if a.synced {
		a.s.Log().Once("shards wait", "").Warn("other processes keep this one out of an ensemble: waiting for their end", "server", a.servers, "error", s.err)
	}
	if !a.watched { // look once more: it may have changed before the watch was set
		a.l.Add(a.record.Base)
		a.watched = true
		return nil
	}
	heard, _, err := a.l.Next(ctx, a.e.Timeout()/4)
	a.watched = heard != a.record.Base
	return err
}
