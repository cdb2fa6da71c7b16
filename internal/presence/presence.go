// Package presence keeps an ephemeral node there, at a path that others know: it is created again in every session.
package presence

import (
	"cmp"
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Presence is an ephemeral node that is created again in every session, and when it was removed externally, until it is given
// up. Enter and Apply must know what became of their requests. So it is always known whether the node is there, and no late
// request touches a later node of the same name.
//
// Of two in one session with the same node, the second begins when the first one has ended.
type Presence struct {
	At   *session.Access
	Node string // a path on the servers
	Data []byte // of the node, at first
	// Enter creates the node. Its error is ErrTaken if there is one.
	Enter func(ctx context.Context, e *zkconn.Epoch, data []byte) error
	// Apply makes a change that depends on what was seen on a connection: see [writers.Writers.ApplyOn].
	Apply func(ctx context.Context, e *zkconn.Epoch, link int64, ops ...any) error
	// Exit, if it is not nil, is what follows when the node was removed, by this process or another.
	Exit func(ctx context.Context, e *zkconn.Epoch) error
	// Lifetime returns the timeout of another session, 0 if that is not known.
	Lifetime func(ctx context.Context, e *zkconn.Epoch, session int64) (time.Duration, error)
	// Changed, if it is not nil, is called when the node is there, and with nil when it is not any more. It must not block.
	Changed func(*Stay)
	// Taken is the error if the node of another stays. here says that it is of this very session.
	Taken func(here bool) error

	leaving context.Context
	leave   context.CancelFunc
	done    chan struct{} // closed when nothing more will happen
	turn    chan struct{} // has a value while Set runs

	mu      sync.Mutex
	news    chan struct{} // closed when anything below changes
	stay    *Stay         // nil while the node is not there
	last    *Stay         // the newest; nil if the node was never there
	waited  bool          // the first attempt has waited for the node of another
	wanted  int           // counts the calls of Set
	written int           // wanted, as of the data with which the node was last created
	stays   error         // why the node could not be removed yet
	err     error         // why nothing more will happen
}

// Stay is the time between the creation of the node and its end.
type Stay struct {
	Epoch *zkconn.Epoch
	Lost  chan struct{} // closed when it has ended

	link    int64 // the connection on which the node was last seen, or created
	version int32 // of the node then, or after the last change
}

// ErrTaken means that there is a node of that name.
var ErrTaken = errors.New("the node is there")

// Start begins. It is called once. After Close of the session has begun, it fails.
func (p *Presence) Start() error {
	p.leaving, p.leave = context.WithCancel(errs.WithTrail(context.Background()))
	p.done, p.news, p.turn = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	if !p.At.Spawn(p.run) {
		return errs.ErrClosed
	}
	return nil
}

func (p *Presence) run() {
	defer close(p.done)
	err := p.At.Occupy(p.Node, &session.Keeper{Leaving: p.leaving, Done: p.done})
	switch {
	case errors.Is(err, session.ErrOccupied):
		err = p.Taken(true)
	case err == nil:
		defer p.At.Vacate(p.Node)
		err = p.At.Run(p.leaving, "", p.in, session.Lasting)
	}
	if p.leaving.Err() != nil && !p.At.Closing() {
		err = errs.ErrReleased
	}
	p.note(func() { p.err = cmp.Or(err, errs.ErrClosed) })
}

// in is the presence in one session. Requests that change something do not end with leaving: their outcome must be known.
func (p *Presence) in(ctx context.Context, e *zkconn.Epoch) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.leaving, cancel)()
	for pace := (node.Pace{Free: 1}); p.leaving.Err() == nil; {
		if p.At.Closing() {
			return errs.ErrClosed // it may be gone because of that
		}
		p.mu.Lock()
		data, wanted := p.Data, p.wanted
		p.mu.Unlock()
		st := &Stay{Epoch: e, Lost: make(chan struct{}), link: e.Connection()} // if it is the connection after the request, the node was created on it
		err := p.Enter(ctx, e, data)
		switch {
		case err == nil:
			err = p.remain(ctx, waiting, st, wanted)
		case errors.Is(err, ErrTaken):
			err = p.untilFree(waiting, e)
		case errors.Is(err, errs.ErrSessionExpired):
			err = zkconn.ErrOver // whatever a lost request has created ends with the session
		default: // perhaps it failed after it had created the node
			st.link = -1 // look first: it may be the node of another
			p.withdraw(ctx, st)
		}
		if p.leaving.Err() != nil && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return err
		}
		_ = pace.Rest(waiting, e)
	}
	return nil
}

// remain waits while the node is there. It removes it when it is given up.
func (p *Presence) remain(ctx, waiting context.Context, st *Stay, wanted int) error {
	p.note(func() {
		p.stay, p.last, p.written = st, st, wanted
		p.report(st)
	})
	hook := st.Epoch.OnOver(func(error) { p.lost(st) })
	defer hook.Stop()
	err := p.untilGone(waiting, st)
	p.lost(st) // before another can take the place
	if ctx.Err() != nil || err == nil || errors.Is(err, zkconn.ErrOver) {
		return err
	}
	if p.leaving.Err() == nil { // the servers refuse to report on the node
		p.withdraw(ctx, st)
		return err
	}
	// The node must not outlive the presence for longer than it has to. As long as the servers refuse, it tries again.
	for pace := (node.Pace{}); ; {
		err := p.remove(ctx, st)
		switch {
		case err == nil && p.Exit != nil:
			return p.Exit(ctx, st.Epoch)
		case err == nil || ctx.Err() != nil || errors.Is(err, zkconn.ErrOver) || errors.Is(err, errs.ErrSessionExpired):
			return err
		}
		p.note(func() { p.stays, st.link = err, -1 }) // look first: perhaps the whole record was removed, with the node
		if err := pace.Rest(ctx, st.Epoch); err != nil {
			return err
		}
	}
}

// withdraw tries to remove the node of a presence that has failed: it must not outlive that.
func (p *Presence) withdraw(ctx context.Context, st *Stay) {
	if p.remove(ctx, st) == nil && p.Exit != nil {
		_ = p.Exit(ctx, st.Epoch)
	}
}

// remove removes the node if it is ours. While the connection was lost, our node may have been removed, and another process may have
// created its own. So on the next connection look comes first.
func (p *Presence) remove(ctx context.Context, st *Stay) error {
	p.mu.Lock()
	link, version := st.link, st.version
	p.mu.Unlock()
	for pace := (node.Pace{Free: 2}); ; {
		if link != st.Epoch.Connection() {
			ours := false
			var err error
			if link, version, ours, err = p.look(ctx, st.Epoch); err != nil || !ours {
				return err
			}
		}
		err := p.Apply(ctx, st.Epoch, link, &zk.DeleteRequest{Path: p.Node, Version: version})
		switch {
		case err == nil, record.RefusedAt(err, 0, zk.ErrNoNode):
			return nil
		case !record.RefusedAt(err, 0, zk.ErrBadVersion) && !errors.Is(err, writers.ErrMoved):
			return err
		}
		link = -1 // look
		if err := pace.Rest(ctx, st.Epoch); err != nil {
			return err
		}
	}
}

// look returns whether the node is that of this session, on which connection it was seen, and its version there.
func (p *Presence) look(ctx context.Context, e *zkconn.Epoch) (link int64, version int32, ours bool, err error) {
	err = record.Insist(ctx, e, func() error {
		link = e.Connection()
		if err := record.Synced(ctx, e, path.Dir(p.Node)); err != nil {
			return err
		}
		now, there, err := e.Exists(ctx, p.Node)
		if ours = there && now.EphemeralOwner == e.ID(); ours {
			version = now.Version
		}
		if err == nil && link != e.Connection() {
			err = node.ErrAgain
		}
		return err
	})
	return link, version, ours, err
}

// untilGone waits until the node is removed. It makes no request while nothing happens, if the servers report the end of the
// node to this session; else it looks once in each session timeout. After each change and each disconnect it looks whose node
// is there, because ours may have been removed, and another created. The request that sets the watch shows that, and the version.
func (p *Presence) untilGone(ctx context.Context, st *Stay) error {
	e := st.Epoch
	for pace := (node.Pace{}); ; {
		if err := e.Await(ctx); err != nil {
			return err
		}
		link, heard := e.Connection(), make(chan zkconn.Event, 1)
		w, call := e.StartWatchAbsence(p.Node, func(what zkconn.Event) { heard <- what })
		seen, err := call.Wait(ctx, e)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			e.Unwatch(w)
			return nil
		case err != nil:
			if zkconn.GiveUp(e, w, call); !zkconn.Unknown(err) && !errors.Is(err, zkconn.ErrNotSent) {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
			continue
		case seen.EphemeralOwner != e.ID():
			e.Unwatch(w)
			return nil
		case link != e.Connection(): // perhaps the answer came on a later connection, whose start no event reports
			w.Stop()
			continue
		}
		p.saw(st, link, seen.Version)
		var look <-chan time.Time
		if !e.Reads(p.At.ACL()) {
			look = time.After(e.Timeout())
		}
		select {
		case what := <-heard:
			if what == zkconn.Deleted {
				return nil
			}
		case <-look:
			w.Stop()
		case <-ctx.Done():
			w.Stop() // the node goes, and the watch with it
			return ctx.Err()
		case <-e.Over():
			return zkconn.ErrOver
		}
	}
}

// note changes what is known, and wakes all that wait for news.
func (p *Presence) note(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.news)
	p.news = make(chan struct{})
}

// report calls Changed. mu is held, so the calls are in order.
func (p *Presence) report(st *Stay) {
	if p.Changed != nil {
		p.Changed(st)
	}
}

// saw notes that the node was seen on a connection, or written to.
func (p *Presence) saw(st *Stay, link int64, version int32) {
	p.note(func() {
		st.link = max(st.link, link)
		if version-st.version > 0 { // else a late answer shows an earlier one
			st.version = version
		}
	})
}

// lost notes that the node is not there any more. It may be called twice.
func (p *Presence) lost(st *Stay) {
	p.note(func() {
		if p.stay == st {
			p.stay = nil
			close(st.Lost)
			p.report(nil)
		}
	})
}

// await waits until so, which is called under mu, reports true.
func (p *Presence) await(ctx context.Context, so func() bool) error {
	for {
		p.mu.Lock()
		is, news, err := so(), p.news, p.err
		p.mu.Unlock()
		switch {
		case err != nil:
			return err
		case is:
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return errs.After(errs.OfContext(ctx), p.At.LastFailure(p.leaving))
		}
	}
}

// There waits until the node is there.
func (p *Presence) There(ctx context.Context) (st *Stay, err error) {
	err = p.await(ctx, func() bool { st = p.stay; return st != nil })
	return st, err
}

// Waited reports whether the first attempt has waited for the node of another, in vain as yet.
func (p *Presence) Waited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last == nil && p.waited
}

// GiveUp gives the node up, and does not wait.
func (p *Presence) GiveUp() { p.leave() }

// Leave gives the node up, and waits until it is gone, or ctx ends. If the servers refuse to remove it, the error says why, and
// the attempts go on.
func (p *Presence) Leave(ctx context.Context) error {
	p.leave()
	var stays error
	err := p.await(ctx, func() bool { stays = p.stays; return stays != nil })
	if p.Err() != nil {
		<-p.done
		return nil
	}
	return cmp.Or(err, stays)
}

// Done is closed when nothing more will happen; then Err returns why.
func (p *Presence) Done() <-chan struct{} { return p.done }

// Err is nil until shortly before Done is closed. It is errs.ErrReleased after Leave.
func (p *Presence) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Leaving ends when the node is given up.
func (p *Presence) Leaving() context.Context { return p.leaving }

// Lost is the channel of the present stay, or of the last one.
func (p *Presence) Lost() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return nil
	}
	return p.last.Lost
}
