package zkwaitgroup

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// A request whose connection was lost may linger in the server that took it, and be applied when
// somebody has looked in vain, and even when its members have been added by another request and are
// done. What changes a record names its version, so it is refused then. What makes one is not, once
// the record is gone again; and nobody would say that its members are done. So whoever has sent such
// a request looks for the record again, for as long as the session could be moved about.

// linger notes that the outcome of a plan is in doubt.
func (g *WaitGroup) linger(e *zkconn.Epoch, b *batch, p *plan) {
	b.lingers = e
	if !p.opens() || b.made == p.edits[0].h {
		return
	}
	ghost := p.edits[0].h
	b.made = ghost
	g.at.Spawn(func() {
		for _, part := range []int{16, 16, 8, 4, 2} { // two session timeouts in all
			if node.Sleep(context.Background(), e, 2*e.Timeout()/time.Duration(part)) != nil {
				return // whatever lingers has ended with the session
			}
			<-g.ask(&change{ghost: ghost, written: make(chan struct{})}).written
		}
	})
}

// exorcise removes a record that has come when nobody wanted it any more.
func (g *WaitGroup) exorcise(ctx context.Context, e *zkconn.Epoch, ghost *holding) error {
	if ghost.epoch != e || ghost == g.own || slices.Contains(g.lost, ghost) {
		return nil
	}
	if err := record.Synced(ctx, e, g.base()); err != nil {
		return err
	}
	if _, there, err := e.Exists(ctx, g.life(ghost.id)); err != nil || !there {
		return err
	}
	_, err := record.Transact(ctx, e,
		&zk.DeleteRequest{Path: g.record(ghost.id), Version: -1},
		&zk.DeleteRequest{Path: g.life(ghost.id), Version: -1})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return g.end(ctx, e)
}
