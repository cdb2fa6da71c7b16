package presence

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// untilFree waits until the node of another session is gone. That session may have ended already, except for the servers: it
// is that of a process that was killed and started again, or an earlier one of this process. So the first attempt waits as
// long as that may last: one and a half times its timeout, or ours if that is longer or the other is not known. After that
// the other session lives.
func (p *Presence) untilFree(ctx context.Context, e *zkconn.Epoch) error {
	p.mu.Lock()
	p.waited = true
	first := p.last == nil
	p.mu.Unlock()
	if !first {
		return record.UntilGone(ctx, e, p.Node, 0, nil)
	}
	return record.Insist(ctx, e, func() error { return p.outlast(ctx, e) })
}

// outlast is untilFree on one connection. A new leader, or a server that starts again, gives every session its whole timeout once
// more, and ends all connections; so a wait on an earlier connection does not count. Nor does the time in which this process
// or the leader stood still: of each slice no more counts than it was to take, and the leader answers at its end.
func (p *Presence) outlast(ctx context.Context, e *zkconn.Epoch) error {
	l := record.Hear(e, p.Node)
	defer l.Stop()
	now, there, err := e.Exists(ctx, p.Node)
	switch {
	case err != nil || !there:
		return err
	case now.EphemeralOwner == e.ID():
		return p.Taken(true)
	}
	lifetime, waited := e.Timeout(), time.Duration(0)
	for {
		for waited < lifetime*3/2 {
			slice := min(lifetime/4, lifetime*3/2-waited)
			heard, what, err := l.Next(ctx, slice)
			switch {
			case err != nil:
				return err
			case heard != "" && what == zkconn.Disconnected:
				return node.ErrAgain
			case heard != "" && what == zkconn.Changed: // it lives
				l.Add(p.Node)
			case heard != "":
				return nil
			}
			waited += slice
			if err := record.Synced(ctx, e, p.Node); err != nil {
				return err
			}
			next, there, err := e.Exists(ctx, p.Node)
			switch {
			case err != nil || !there:
				return err
			case next.Czxid != now.Czxid: // that is another one
				return node.ErrAgain
			}
		}
		its, err := p.Lifetime(ctx, e, now.EphemeralOwner)
		if err != nil {
			return err
		}
		if its <= lifetime {
			return p.Taken(false)
		}
		lifetime = its
	}
}
