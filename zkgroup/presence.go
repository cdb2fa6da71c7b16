package zkgroup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// presence is an ephemeral node of a name of its own, that is made again in every session, and when somebody has removed
// it, until it is given up. All its changes are those of package writers. So it is always known whether the node is there,
// and no late request touches a later node of the same name.
type presence struct {
	at   *session.Access
	node string
	// enter makes the node. The error is errTaken if there is one.
	enter func(ctx context.Context, e *zkconn.Epoch) error
	// exit removes it.
	exit func(ctx context.Context, e *zkconn.Epoch) error
	// changed is told when the node is there (stay is not nil), and when it is not any more. It must not block.
	changed func(*stay)

	leaving context.Context
	leave   context.CancelFunc
	done    chan struct{} // closed when nothing more will happen

	mu      sync.Mutex
	stay    *stay         // nil while the node is not there
	news    chan struct{} // closed when stay changes, or err is set
	last    <-chan struct{}
	ever    bool      // it was there
	joining bool      // a request that makes it may be under way
	until   time.Time // how long the first attempt waits for the node of another to go
	err     error     // why nothing more will happen
}

// stay is the time between the creation of the node and its end.
type stay struct {
	e    *zkconn.Epoch
	lost chan struct{} // closed when it has ended
}

// errTaken means that there is a node of that name.
var errTaken = errors.New("the node is there")

// start begins. After Close of the session has begun, it fails.
func (p *presence) start() error {
	p.leaving, p.leave = context.WithCancel(context.Background())
	p.done, p.news = make(chan struct{}), make(chan struct{})
	if p.changed == nil {
		p.changed = func(*stay) {}
	}
	if !p.at.Spawn(p.run) {
		return errs.ErrClosed
	}
	return nil
}

func (p *presence) run() {
	defer close(p.done)
	err := p.at.In(context.Background(), p.in)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil {
		p.err = errs.ErrReleased
	}
	close(p.news)
	p.news = make(chan struct{})
}

// in is the presence in one session. Requests that change something do not end with leaving: their outcome must be known.
func (p *presence) in(ctx context.Context, e *zkconn.Epoch) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.leaving, cancel)()
	for pace := (node.Pace{Free: 1}); p.enters(true); {
		if p.at.Closing() {
			return errs.ErrClosed // it may be gone because of that
		}
		err := p.enter(ctx, e)
		if err != nil {
			p.enters(false)
		}
		switch {
		case err == nil:
			err = p.remain(ctx, waiting, e)
		case errors.Is(err, errTaken):
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
func (p *presence) remain(ctx, waiting context.Context, e *zkconn.Epoch) error {
	forget := record.NodeAtClose(p.at.Session, e, zkconn.Orphan{Dir: parentOf(p.node), Node: p.node})
	defer func() {
		if !p.at.Closing() { // else the node is to be removed for that
			forget()
		}
	}()
	st := &stay{e, make(chan struct{})}
	p.set(st)
	hook := e.OnLost(func(error) { p.lost(st) })
	defer hook.Stop()
	defer p.lost(st)
	err := p.untilGone(waiting, e)
	p.lost(st) // before another can take the place
	if p.leaving.Err() == nil || ctx.Err() != nil || err == nil {
		return err
	}
	return p.exit(ctx, e)
}

// untilGone waits until somebody has removed the node. It makes no request while nothing happens.
func (p *presence) untilGone(ctx context.Context, e *zkconn.Epoch) error {
	for {
		if err := e.Await(ctx); err != nil {
			return err
		}
		l := record.Hear(e, p.node)
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
func (p *presence) untilFree(ctx context.Context, e *zkconn.Epoch) error {
	st, there, err := e.Exists(ctx, p.node)
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
		return record.UntilGone(ctx, e, p.node, st.Czxid, nil)
	}
	taken := fmt.Errorf("%w: another living member has this ID", errs.ErrMisuse)
	if st.EphemeralOwner == e.ID() {
		return taken
	}
	ctx, cancel := context.WithDeadlineCause(ctx, until, taken)
	defer cancel()
	return record.UntilGone(ctx, e, p.node, st.Czxid, nil)
}

// set notes that the node is there.
func (p *presence) set(st *stay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stay, p.last, p.ever, p.joining = st, st.lost, true, false
	close(p.news)
	p.news = make(chan struct{})
	p.changed(st)
}

// enters notes whether a request that makes the node may be under way. It reports false if there must be none any more.
func (p *presence) enters(now bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.joining = now && p.leaving.Err() == nil
	return p.joining
}

// lost notes that the node is not there any more. It may be called twice.
func (p *presence) lost(st *stay) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stay != st {
		return
	}
	p.stay = nil
	close(st.lost)
	close(p.news)
	p.news = make(chan struct{})
	p.changed(nil)
}

// there waits until the node is there. Without a first one, the error says that nobody waits for the node of another.
func (p *presence) there(ctx context.Context) (*stay, error) {
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

// waited reports whether the first attempt has waited for the node of another.
func (p *presence) waited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ever && !p.until.IsZero()
}

// left gives the node up, and waits until it is gone, or until ctx ends.
func (p *presence) left(ctx context.Context) error {
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

// refusedAt is the index of the operation for which the servers refused a change, and the reason; -1 if they did not.
func refusedAt(err error) (int, error) {
	var refused *zkconn.TxnError
	if errors.As(err, &refused) {
		return refused.Index, refused.Err
	}
	return -1, err
}

// is reports whether the servers refused a change for this reason at this operation.
func is(err error, index int, reason error) bool {
	at, why := refusedAt(err)
	return at == index && errors.Is(why, reason)
}

// ending says why nothing more will happen, after done.
func (p *presence) ending() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
