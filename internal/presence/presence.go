// Package presence keeps an ephemeral node there, at a path that others know: it is made again in every session.
package presence

import (
	"context"
	"errors"
	"path"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Presence is an ephemeral node that is made again in every session, and when somebody has removed it, until it is given
// up. The functions that make and remove it must know what became of their requests, as the changes of package writers do. So it is
// always known whether the node is there, and no late request touches a later node of the same name.
type Presence struct {
	At   *session.Access
	Node string // a path on the servers
	// Enter makes the node. Its error is ErrTaken if there is one.
	Enter func(ctx context.Context, e *zkconn.Epoch) error
	// Exit removes it.
	Exit func(ctx context.Context, e *zkconn.Epoch) error
	// Changed, if it is not nil, is told when the node is there, and with nil when it is not any more. It must not block.
	Changed func(*Stay)
	// Taken is the error if the node of another stays.
	Taken error

	leaving context.Context
	leave   context.CancelFunc
	done    chan struct{} // closed when nothing more will happen

	mu      sync.Mutex
	stay    *Stay         // nil while the node is not there
	news    chan struct{} // closed when stay changes, or err is set
	last    <-chan struct{}
	ever    bool      // it was there
	joining bool      // a request that makes it may be under way
	until   time.Time // how long the first attempt waits for the node of another to go
	err     error     // why nothing more will happen
}

// Stay is the time between the creation of the node and its end.
type Stay struct {
	Epoch *zkconn.Epoch
	Lost  <-chan struct{} // closed when it has ended

	lost chan struct{}
}

// ErrTaken means that there is a node of that name.
var ErrTaken = errors.New("the node is there")

// Start begins. It is called once. After Close of the session has begun, it fails.
func (p *Presence) Start() error {
	p.leaving, p.leave = context.WithCancel(context.Background())
	p.done, p.news = make(chan struct{}), make(chan struct{})
	if !p.At.Spawn(p.run) {
		return errs.ErrClosed
	}
	return nil
}

func (p *Presence) run() {
	defer close(p.done)
	err := p.At.In(context.Background(), p.in)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil {
		p.err = errs.ErrReleased
	}
	close(p.news)
	p.news = make(chan struct{})
}

// in is the presence in one session. Requests that change something do not end with leaving: their outcome must be known.
func (p *Presence) in(ctx context.Context, e *zkconn.Epoch) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.leaving, cancel)()
	for pace := (node.Pace{Free: 1}); p.enters(true); {
		if p.At.Closing() {
			return errs.ErrClosed // it may be gone because of that
		}
		err := p.Enter(ctx, e)
		if err != nil {
			p.enters(false)
		}
		switch {
		case err == nil:
			err = p.remain(ctx, waiting, e)
		case errors.Is(err, ErrTaken):
			err = p.untilFree(waiting, e)
		case errors.Is(err, errs.ErrSessionExpired):
			err = zkconn.ErrOver // whatever a lost request has made ends with the session
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
func (p *Presence) remain(ctx, waiting context.Context, e *zkconn.Epoch) error {
	forget := record.NodeAtClose(p.At.Session, e, zkconn.Orphan{Dir: path.Dir(p.Node), Node: p.Node})
	defer func() {
		if !p.At.Closing() { // else the node is to be removed for that
			forget()
		}
	}()
	lost := make(chan struct{})
	st := &Stay{e, lost, lost}
	p.set(st)
	hook := e.OnLost(func(error) { p.lost(st) })
	defer hook.Stop()
	defer p.lost(st)
	err := p.untilGone(waiting, e)
	p.lost(st) // before another can take the place
	if p.leaving.Err() == nil || ctx.Err() != nil || err == nil {
		return err
	}
	return p.Exit(ctx, e)
}

// untilGone waits until somebody has removed the node. It makes no request while nothing happens, if it is certain
// that the servers would tell.
func (p *Presence) untilGone(ctx context.Context, e *zkconn.Epoch) error {
	if !e.Reads(p.At.ACL()) {
		return record.UntilGone(ctx, e, p.Node, 0, nil)
	}
	for {
		if err := e.Await(ctx); err != nil {
			return err
		}
		l := record.Hear(e, p.Node)
		heard, what, err := l.Next(ctx, 24*time.Hour)
		l.Stop()
		if err != nil {
			return err
		}
		if heard != "" && what != zkconn.Changed && what != zkconn.Disconnected {
			return nil
		}
	}
}

// untilFree waits until the node of another is gone. Its session may have ended already for everybody but the
// servers: it is that of a process that was killed and started again, or an earlier one of this process. So the first
// attempt waits as long as such a session may last. After that the other one lives.
func (p *Presence) untilFree(ctx context.Context, e *zkconn.Epoch) error {
	st, there, err := e.Exists(ctx, p.Node)
	if err != nil || !there {
		return err
	}
	p.mu.Lock()
	if p.until.IsZero() {
		p.until = time.Now().Add(e.Timeout() * 3 / 2)
	}
	first, until := !p.ever, p.until
	p.mu.Unlock()
	if !first {
		return record.UntilGone(ctx, e, p.Node, st.Czxid, nil)
	}
	if st.EphemeralOwner == e.ID() {
		return p.Taken
	}
	ctx, cancel := context.WithDeadlineCause(ctx, until, p.Taken)
	defer cancel()
	return record.UntilGone(ctx, e, p.Node, st.Czxid, nil)
}

// set notes that the node is there.
func (p *Presence) set(st *Stay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stay, p.last, p.ever, p.joining = st, st.lost, true, false
	close(p.news)
	p.news = make(chan struct{})
	p.tell(st)
}

// enters notes whether a request that makes the node may be under way. It reports false if there must be none any more.
func (p *Presence) enters(now bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joining = now && p.leaving.Err() == nil
	return p.joining
}

// lost notes that the node is not there any more. It may be called twice.
func (p *Presence) lost(st *Stay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stay != st {
		return
	}
	p.stay = nil
	close(st.lost)
	close(p.news)
	p.news = make(chan struct{})
	p.tell(nil)
}

// There waits until the node is there. Without a first one, the error says that nobody waits for the node of another.
func (p *Presence) There(ctx context.Context) (*Stay, error) {
	for {
		p.mu.Lock()
		st, news, err := p.stay, p.news, p.err
		p.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case st != nil:
			return st, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, errs.OfContext(ctx)
		}
	}
}

// Waited reports whether the first attempt has waited for the node of another.
func (p *Presence) Waited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ever && !p.until.IsZero()
}

// GiveUp gives the node up, and does not wait.
func (p *Presence) GiveUp() { p.leave() }

// Leave gives the node up, and waits until it is gone, or until ctx ends.
func (p *Presence) Leave(ctx context.Context) error {
	p.mu.Lock()
	p.leave()
	gone := p.stay == nil && p.ever && !p.joining
	p.mu.Unlock()
	if gone {
		return nil
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return errs.OfContext(ctx)
	}
}

// Done is closed when nothing more will happen; then Err says why.
func (p *Presence) Done() <-chan struct{} { return p.done }

// Err is nil until Done is closed. It is errs.ErrReleased after Leave.
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
	return p.last
}

// tell calls Changed. mu is held, so the calls are in order.
func (p *Presence) tell(st *Stay) {
	if p.Changed != nil {
		p.Changed(st)
	}
}
