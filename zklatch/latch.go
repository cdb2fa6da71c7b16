// Package zklatch lets processes wait for an event, once ([Latch]) or from time to time ([Gate]).
package zklatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Latch opens when a number of events has been counted, in any processes, and stays open:
// java.util.concurrent's CountDownLatch for many machines. It cannot be closed again, but destroyed.
type Latch struct {
	total     int
	ephemeral bool
	at        *session.Access
	terms     record.Terms[terms]

	opened session.Memory[struct{}] // this object has found the latch open

	mu      sync.Mutex
	awaited *session.Await[struct{}] // the wait that Done shares with other objects of this latch; nil if there is none, or the latch was found open
}

// terms is the data of the base node. Below the base node there are
//
//	closed-of-3     until the latch opens. It has the total in its name, so an event need not read the total
//	counts          with one node for each event
type terms struct {
	Total int  `json:"total"`
	Open  bool `json:"open,omitempty"`
}

// errRemoved is the error when a latch has lost nodes that only another program deletes.
var errRemoved = errs.Broken("the latch", "nodes of it were removed externally")

// option is an option that only New takes.
type option struct {
	zksync.Option
	set func(*Latch)
}

// WithEphemeral makes a count end with its session, as long as the latch has not opened. A CountDown whose
// session is lost may have to wait until the servers have ended it.
func WithEphemeral() zksync.Option {
	return option{session.Misplaced("WithEphemeral"), func(l *Latch) { l.ephemeral = true }}
}

// New names a latch of total events.
func New(s *zksync.Session, path string, total int, opts ...zksync.Option) *Latch {
	own, rest := session.Own[option](opts)
	l := &Latch{total: total, at: session.NewAccess("zklatch", (*session.Session)(s), path, rest).Without(session.OfHolds...)}
	for _, o := range own {
		o.set(l)
	}
	if total < 0 {
		l.at.Refuse(errs.Misuse("a latch of %d events; give 0 or more", total))
	}
	if l.at.Misuse() == nil {
		l.terms.Base, l.terms.ACL, l.terms.Type, l.terms.Keys = l.at.Full(path), l.at.ACL(), layout.Latch, []string{"total"}
		l.terms.First = func() (terms, []string) {
			if total == 0 {
				return terms{Open: true}, []string{l.counts()}
			}
			return terms{Total: total}, []string{l.counts(), l.closed()}
		}
		l.terms.Check = func(t terms) error {
			if t.Total != total {
				return errs.Misuse("the number of events of the latch is %d, not %d; use the same number everywhere, or first remove the latch with menagerie reset", t.Total, total)
			}
			return nil
		}
		l.terms.Read = l.opened.Read
		l.opened.At, l.opened.Node, l.opened.Final = l.at, l.terms.Base, func(c zkconn.Content) *struct{} {
			if t, ok := l.terms.Decode(c.Data); ok && t.Open {
				return &struct{}{}
			}
			return nil
		}
	}
	return l
}

func (l *Latch) counts() string { return l.terms.Base + "/counts" }
func (l *Latch) closed() string { return fmt.Sprintf("%s/closed-of-%d", l.terms.Base, l.total) }

// made is l, which New has made. It panics with a zero or nil value.
func (l *Latch) made() *Latch {
	if l == nil || l.at == nil {
		panic(errs.Unmade("zklatch", "a Latch", "New"))
	}
	return l
}

// run is Run of the access. If this object knows that the latch is open, it does not run f.
func (l *Latch) run(ctx context.Context, op string, f func(context.Context, *zkconn.Epoch) error) error {
	l.made().hear()
	if open, err := l.opened.Now(ctx); open != nil || err != nil {
		return l.at.Named(op, err)
	}
	return l.at.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		if open, _ := l.opened.Recall(); open != nil { // another call has found that out meanwhile
			return nil
		}
		return f(ctx, e)
	})
}

// CountDown counts one event, exactly once. After the latch has opened it changes nothing. If nodes of the
// latch were removed externally, the error is zksync.ErrBroken.
func (l *Latch) CountDown(ctx context.Context) error {
	event := newEvent()
	return l.run(ctx, "count-down", func(ctx context.Context, e *zkconn.Epoch) error { return l.countDown(ctx, e, event) })
}

// newEvent names the node of an event. The name has no sequence number, so all requests for the event make one node, in any
// number of sessions.
func newEvent() string { return node.Prefix(node.NewUUID()) + "-count" }

// countDown counts the event, unless the latch is open, and opens the latch if that was the last event.
func (l *Latch) countDown(ctx context.Context, e *zkconn.Epoch, event string) (err error) {
	founded, doubt := int64(0), false // the event may be counted
	defer func() { err = errs.InDoubt(err, doubt) }()
	for pace := (node.Pace{Free: 1}); ; {
		n, err := l.count(ctx, e, event)
		doubt = doubt || err == nil || errs.Ambiguous(err)
		switch {
		case err == nil && n >= l.total:
			if err = l.open(ctx, e, event); !errors.Is(err, node.ErrAgain) {
				return err
			}
		case record.RefusedAt(err, 0, zk.ErrNoNode): // the latch is open, or there is none yet
			if open, err := l.isOpen(ctx, e, &founded); open || err != nil {
				return err
			}
		case record.RefusedAt(err, 1, zk.ErrNoNode):
			return errRemoved
		case !errors.Is(err, node.ErrAgain):
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// count makes the node of the event while the latch is closed, and returns the number of events so far.
func (l *Latch) count(ctx context.Context, e *zkconn.Epoch, event string) (n int, err error) {
	var flags int32
	if l.ephemeral {
		flags = zk.FlagEphemeral
	}
	path := l.counts() + "/" + event
	res, err := node.RepeatChange(ctx, e,
		&zk.CheckVersionRequest{Path: l.closed(), Version: -1},
		&zk.CreateRequest{Path: path, Data: l.at.Owner(), Acl: l.at.ACL(), Flags: flags},
		&zk.SetDataRequest{Path: l.counts(), Version: -1}) // its Stat shows how many events there are
	switch {
	case err == nil && len(res) > 2 && res[2].Stat != nil:
		return int(res[2].Stat.NumChildren), nil
	case err != nil && !record.RefusedAt(err, 1, zk.ErrNodeExists):
		return 0, err
	case l.ephemeral:
		// The node may be of an earlier session. Then it goes with that session, and this call waits for that. It does
		// not delete the node: a delete that is applied late would also remove the next node of that name.
		st, there, err := e.Exists(ctx, path)
		if err != nil {
			return 0, errs.MarkAmbiguous(err)
		}
		if !there || st.EphemeralOwner != e.ID() {
			return 0, node.ErrAgain
		}
	}
	n, err = l.counted(ctx, e)
	return n, errs.MarkAmbiguous(err)
}

// counted is the number of events that have been counted.
func (l *Latch) counted(ctx context.Context, e *zkconn.Epoch) (int, error) {
	dir, there, err := e.Exists(ctx, l.counts())
	if err != nil || !there {
		return 0, err
	}
	return int(dir.NumChildren), nil
}

// open opens the latch to which the event belongs. Several processes may try. The transaction writes to the base node
// that the latch is open, and changes and then deletes the node that all waiters watch. So the event that this node was
// changed shows a waiter that the latch is open, and the waiter need not ask. An external removal does not change the
// node first, so it opens nothing. node.ErrAgain means that the node of the event is gone.
func (l *Latch) open(ctx context.Context, e *zkconn.Epoch, event string) error {
	_, err := node.RepeatChange(ctx, e,
		// A node of the next latch has another name.
		&zk.CheckVersionRequest{Path: l.counts() + "/" + event, Version: -1},
		&zk.SetDataRequest{Path: l.terms.Base, Data: record.Encode(terms{l.total, true}), Version: -1},
		&zk.SetDataRequest{Path: l.closed(), Version: -1},
		&zk.DeleteRequest{Path: l.closed(), Version: -1})
	switch {
	case err == nil:
		l.learn(e)
	case record.RefusedAt(err, 0, zk.ErrNoNode):
		return node.ErrAgain
	case record.RefusedAt(err, 2, zk.ErrNoNode): // it is open, or the node was deleted externally
		_, err = l.ask(ctx, e, zkconn.Deleted, nil)
	}
	return err
}

// isOpen is called after a look that did not find the node closed. If there is no latch yet, it creates the latch.
// founded is the czxid of the base node of the latch that an earlier look found without that node; 0 means none.
func (l *Latch) isOpen(ctx context.Context, e *zkconn.Epoch, founded *int64) (bool, error) {
	open, there, err := l.found(ctx, e, founded)
	if err == nil && !there {
		_, err = l.terms.Make(ctx, e)
	}
	return open, err
}

// found is isOpen, but creates nothing.
func (l *Latch) found(ctx context.Context, e *zkconn.Epoch, founded *int64) (open, there bool, err error) {
	v, there, err := l.terms.Peek(ctx, e)
	switch {
	case err != nil:
	case v.T.Open:
		l.learn(e)
	case *founded != 0 && (v.Founded == *founded || !there):
		err = errRemoved
	default:
		// The latch may have been made after the look that did not find the node. So the caller looks once more. If
		// that look does not find the node of the same latch either, it was removed externally.
		*founded = v.Founded
	}
	return v.T.Open, there, err
}

// Wait returns when the latch is open. If ctx ends, the error says who has counted. If the latch is removed,
// it is zksync.ErrBroken; a Wait that had no connection then waits for a new latch.
func (l *Latch) Wait(ctx context.Context) error {
	counted := ""
	err := l.run(ctx, "wait", func(ctx context.Context, e *zkconn.Epoch) error {
		err := record.Synced(ctx, e, l.terms.Base)
		founded, open := int64(0), false
		for pace := (node.Pace{Free: 2}); err == nil && !open; {
			if open, err = l.await(ctx, e, &founded); err == nil && !open {
				err = pace.Rest(ctx, e)
			}
		}
		counted = record.Glance(ctx, e, func(ctx context.Context) (string, error) { return l.present(ctx, e) })
		return err
	})
	return record.Saying(err, counted)
}

// present says how many events have been counted, and by whom.
func (l *Latch) present(ctx context.Context, e *zkconn.Epoch) (string, error) {
	names, _, err := e.Children(ctx, l.counts())
	if err != nil {
		return "", err
	}
	by, err := record.Call(ctx, e, l.counts(), names)
	return by.Say(fmt.Sprintf("%d of %d events have been counted", len(names), l.total)), err
}

// await waits for one event of the latch, or for a session timeout. open means that the latch is open; otherwise the
// caller waits again.
func (l *Latch) await(ctx context.Context, e *zkconn.Epoch, founded *int64) (open bool, err error) {
	if err := e.Await(ctx); err != nil {
		return false, err
	}
	news := record.Hear(e, l.closed())
	defer news.Stop()
	_, what, err := news.Next(ctx, e.Timeout())
	if err != nil || what == zkconn.Disconnected {
		return false, err
	}
	return l.ask(ctx, e, what, founded)
}

// ask reports after an event of the node closed whether the latch is open. The event is 0 if there was none for long.
func (l *Latch) ask(ctx context.Context, e *zkconn.Epoch, what zkconn.Event, founded *int64) (open bool, err error) {
	switch what {
	case zkconn.Changed:
		l.learn(e)
		return true, nil
	case zkconn.Deleted: // no change came before: it was deleted externally
		v, _, err := l.terms.Peek(ctx, e)
		if err != nil || !v.T.Open {
			return false, cmp.Or(err, errRemoved)
		}
		l.learn(e)
		return true, nil
	case 0: // some servers do not report the end of a node to a session that may not read it
		if _, closed, err := e.Exists(ctx, l.closed()); err != nil || closed {
			return false, cmp.Or(err, l.openIfDone(ctx, e))
		}
	}
	return l.isOpen(ctx, e, founded)
}

// openIfDone opens the latch if all events have been counted: the process that counted the last one may have died. A
// process that may not open the latch waits until another one does.
func (l *Latch) openIfDone(ctx context.Context, e *zkconn.Epoch) error {
	n, err := l.counted(ctx, e)
	if err != nil || n < l.total {
		return err
	}
	names, _, err := e.Children(ctx, l.counts())
	if err != nil || len(names) == 0 {
		return err
	}
	if err = l.open(ctx, e, names[0]); errors.Is(err, node.ErrAgain) || errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// Done returns a channel that is closed when the latch has opened. It does not block. If its wait fails, as
// Wait would, the next call of Done begins another: so in a select put the call itself.
func (l *Latch) Done() <-chan struct{} {
	l.made().mu.Lock()
	defer l.mu.Unlock()
	done := make(chan struct{})
	known, _ := l.opened.Recall()
	switch {
	case known != nil: // the path may be that of a new latch by now, which others of the session wait for
		close(done)
	case l.awaited != nil:
		return l.awaited.Done()
	case l.at.Misuse() == nil:
		l.awaited = session.AwaitOf(l.at.Session, l.closed(), l.asks)
		return l.awaited.Done()
	}
	return done
}

// asks is what Done asks: what Wait does.
func (l *Latch) asks() session.Asks[struct{}] {
	founded := int64(0)
	return session.Asks[struct{}]{
		Quiet: true,
		Begin: func(ctx context.Context, e *zkconn.Epoch) error {
			founded = 0
			return record.Synced(ctx, e, l.terms.Base)
		},
		Event: func(ctx context.Context, e *zkconn.Epoch, what zkconn.Event) (*struct{}, error) {
			if open, err := l.ask(ctx, e, what, &founded); err != nil || !open {
				return nil, err
			}
			return &struct{}{}, nil
		},
	}
}

// hear learns what the wait of Done knows, if another object has asked for it.
func (l *Latch) hear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited != nil && l.awaited.Known() != nil {
		l.opened.Learn(nil, struct{}{})
		l.awaited = nil
	}
}

// learn notes that the latch is open.
func (l *Latch) learn(e *zkconn.Epoch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened.Learn(e, struct{}{})
	if l.awaited != nil {
		l.awaited.Learn(struct{}{})
		l.awaited = nil
	}
}

// forget has the next call ask the servers.
func (l *Latch) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened.Forget()
	l.awaited = nil
}

// Count is the number of events that are still to come; 0 if the latch is open.
func (l *Latch) Count(ctx context.Context) (remaining int, err error) {
	err = l.run(ctx, "count", func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, l.terms.Base); err != nil {
			return err
		}
		for founded := int64(0); ; {
			_, closed, err := e.Exists(ctx, l.closed())
			if err != nil {
				return err
			}
			if closed {
				n, err := l.counted(ctx, e)
				remaining = max(l.total-n, 0)
				return err
			}
			switch open, there, err := l.found(ctx, e, &founded); {
			case err != nil || open:
				remaining = 0
				return err
			case !there:
				remaining = l.total
				return nil
			}
		}
	})
	return remaining, err
}
