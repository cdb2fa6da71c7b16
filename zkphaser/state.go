package zkphaser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// The nodes of a phaser. Its base node says which phase it is in, and is there for ever. In
// phase 7 there are below it
//
//	open      until it has terminated
//	wait-7    what those who wait for the advance watch; it is never written to
//	phase-7   the parties that have still to arrive at phase 7, each an ephemeral node
//	phase-8   those that have arrived at 7, and so have to arrive at 8
//	action    ephemeral, of the session that runs the function of WithOnAdvance; phase-7 is gone then
//
// So a party is one node in one of two directories, and arriving is a move from the one to the
// other in one transaction; the Stats of both tell how many are left in the very moment after.
// Nothing else is written to for that, so parties that arrive at the same time do not get into
// each other's way. The advance is a transaction that deletes wait-7 and phase-7, which the
// servers refuse while somebody is in it; so it is made once, by whoever comes first.
func (p *Phaser) base() string             { return p.door.Full(p.path) }
func (p *Phaser) open() string             { return p.base() + "/open" }
func (p *Phaser) wait(phase int) string    { return fmt.Sprintf("%s/wait-%d", p.base(), phase) }
func (p *Phaser) arrivals(ph int) string   { return fmt.Sprintf("%s/phase-%d", p.base(), ph) }
func (p *Phaser) claim() string            { return p.base() + "/action" }
func (p *Phaser) node(x *party) string     { return p.arrivals(x.at) + "/" + x.name }
func (p *Phaser) nextNode(x *party) string { return p.arrivals(after(x.at)) + "/" + x.name }

// phaserState is the data of the base node.
type phaserState struct {
	Phase      int  `json:"phase"`
	Terminated bool `json:"terminated,omitempty"`
	// Action tells that those who use the phaser have a function that is called when it
	// advances.
	Action bool `json:"action,omitempty"`
}

func (p *Phaser) encode(t turn) []byte {
	data, err := json.Marshal(phaserState{Phase: t.phase, Terminated: t.ended, Action: p.onAdvance != nil})
	if err != nil {
		return nil // a number and two bits always marshal
	}
	return data
}

// peek reads the state, as far as this server knows; ok is false if there is none.
func (p *Phaser) peek(ctx context.Context, e *zkconn.Epoch) (t turn, ok bool, err error) {
	data, _, err := e.Get(ctx, p.base())
	if errors.Is(err, zk.ErrNoNode) {
		return t, false, nil
	}
	if err != nil {
		return t, false, err
	}
	var s phaserState
	if !record.DecodeTerms(data, &s, "phase") || s.Phase < 0 {
		return t, false, fmt.Errorf("%w: the base node is not that of a phaser; use a path of its own", zksync.ErrMisuse)
	}
	if s.Action != (p.onAdvance != nil) {
		return t, false, fmt.Errorf("%w: some use WithOnAdvance with this phaser and some do not", zksync.ErrMisuse)
	}
	p.heard(s.Phase)
	return turn{s.Phase, s.Terminated}, true, nil
}

// learn reads the state, or founds the phaser. The server may lag.
func (p *Phaser) learn(ctx context.Context, e *zkconn.Epoch) (turn, error) {
	for pace := record.Founding(); ; {
		if err := e.Await(ctx); err != nil {
			return turn{}, err
		}
		t, ok, err := p.peek(ctx, e)
		if ok || err != nil {
			return t, err
		}
		if err := p.found(ctx, e); err != nil {
			return t, err
		}
		if err := pace.Rest(ctx, e); err != nil {
			return t, err
		}
	}
}

// learnNow is learn by what the leader of the servers knows.
func (p *Phaser) learnNow(ctx context.Context, e *zkconn.Epoch) (turn, error) {
	if err := record.Synced(ctx, e, p.base()); err != nil {
		return turn{}, err
	}
	return p.learn(ctx, e)
}

// found makes the nodes of phase 0.
func (p *Phaser) found(ctx context.Context, e *zkconn.Epoch) error {
	ops := []any{&zk.CreateRequest{Path: p.base(), Data: p.encode(turn{}), Acl: p.door.ACL()}}
	for _, path := range []string{p.open(), p.wait(0), p.arrivals(0), p.arrivals(1)} {
		ops = append(ops, &zk.CreateRequest{Path: path, Acl: p.door.ACL()})
	}
	_, err := e.StartMulti(ops...).Wait(ctx, e)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zk.ErrNodeExists):
		return record.Synced(ctx, e, p.base()) // this server has to hear of it
	case errors.Is(err, zk.ErrNoNode):
		return node.MakeDir(ctx, e, record.Parent(p.base()), p.door.ACL())
	case zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		return node.Sleep(ctx, e, record.Pause)
	}
	return err
}

// terminate terminates the phaser.
func (p *Phaser) terminate(ctx context.Context, e *zkconn.Epoch) error {
	for rest := record.Rest(0); ; {
		t, err := p.learnNow(ctx, e)
		if err != nil {
			return err
		}
		if t.ended {
			p.clear(e, t.phase)
			return nil
		}
		_, err = e.StartMulti(
			&zk.SetDataRequest{Path: p.base(), Data: p.encode(turn{t.phase, true}), Version: -1},
			&zk.DeleteRequest{Path: p.open(), Version: -1}, // before wait: see await
			&zk.DeleteRequest{Path: p.wait(t.phase), Version: -1},
		).Wait(ctx, e)
		var refused *zkconn.TxnError
		switch {
		case err == nil:
			p.clear(e, t.phase)
			return nil
		case errors.As(err, &refused) && record.Conflict(err), // it has advanced, or terminated
			zkconn.Unknown(err), errors.Is(err, zkconn.ErrNotSent):
		default:
			return err
		}
		if err := rest.Take(ctx, e); err != nil {
			return err
		}
	}
}

// clear removes what nobody needs any more when the phaser has terminated in a phase: our own
// parties, and the directories, if nobody else is in them.
func (p *Phaser) clear(e *zkconn.Epoch, phase int) {
	p.mu.Lock()
	ours := p.drop(func(*party) bool { return true })
	p.lost = false
	p.mu.Unlock()
	var gone []<-chan struct{}
	for _, x := range ours {
		gone = append(gone, p.remove(x))
		x.hook.Stop()
	}
	done := make(chan struct{})
	if p.door.Spawn(func() {
		defer close(done)
		p.sweep(e, gone, phase)
	}) {
		node.Settle(e, done, node.Grace)
	}
}

// sweep removes the directories of a phase when parties are gone, unless somebody else is in them:
// he will do it.
func (p *Phaser) sweep(e *zkconn.Epoch, gone []<-chan struct{}, phase int) {
	ctx, stop := p.inSession(context.Background(), e)
	defer stop()
	for _, done := range gone {
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
	}
	for _, dir := range []string{p.arrivals(phase), p.arrivals(after(phase))} {
		_ = e.Delete(ctx, dir)
	}
}

// Phase is the phase that the phaser is in, negative if it has terminated. Like the other calls
// that only look it is what the leader of the servers knew at some instant of the call, and
// fails when ctx ends or the session is closed.
func (p *Phaser) Phase(ctx context.Context) (int, error) {
	t, err := p.look(ctx)
	return number(t, err), wrap("phase", p.path, err)
}

// Terminated reports whether the phaser has terminated.
func (p *Phaser) Terminated(ctx context.Context) (bool, error) {
	t, err := p.look(ctx)
	return t.ended, wrap("terminated", p.path, err)
}

// look is learnNow without founding the phaser.
func (p *Phaser) look(ctx context.Context) (t turn, err error) {
	err = p.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		if err := record.Synced(ctx, e, p.base()); err != nil {
			return err
		}
		t, _, err = p.peek(ctx, e)
		return err
	})
	return t, err
}

// RegisteredParties is how many parties are registered, in all processes. In a phaser that has
// terminated these numbers mean nothing.
func (p *Phaser) RegisteredParties(ctx context.Context) (int, error) {
	unarrived, arrived, err := p.census(ctx)
	return counted(unarrived+arrived, err), wrap("registered", p.path, err)
}

// ArrivedParties is how many registered parties have arrived at the phase.
func (p *Phaser) ArrivedParties(ctx context.Context) (int, error) {
	_, arrived, err := p.census(ctx)
	return counted(arrived, err), wrap("arrived", p.path, err)
}

// UnarrivedParties is how many registered parties have still to arrive at the phase.
func (p *Phaser) UnarrivedParties(ctx context.Context) (int, error) {
	unarrived, _, err := p.census(ctx)
	return counted(unarrived, err), wrap("unarrived", p.path, err)
}

// counted is what a call returns: nobody should take a number for one that is none.
func counted(n int, err error) int {
	if err != nil {
		return -1
	}
	return n
}

// census counts the parties. An arrival changes both directories; so if the first is what it
// was, the second is of the same moment.
func (p *Phaser) census(ctx context.Context) (unarrived, arrived int, err error) {
	err = p.door.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, p.base()); err != nil {
			return err
		}
		for rest := record.Rest(0); ; {
			t, ok, err := p.peek(ctx, e)
			if err != nil || !ok {
				return err
			}
			here, _, err := e.Exists(ctx, p.arrivals(t.phase))
			if err != nil {
				return err
			}
			next, _, err := e.Exists(ctx, p.arrivals(after(t.phase)))
			if err != nil {
				return err
			}
			again, _, err := e.Exists(ctx, p.arrivals(t.phase))
			if err != nil {
				return err
			}
			now, _, err := p.peek(ctx, e)
			if err != nil {
				return err
			}
			if now == t && children(here) == children(again) && changes(here) == changes(again) {
				unarrived, arrived = children(here), children(next)
				return nil
			}
			if err := rest.Take(ctx, e); err != nil {
				return err
			}
		}
	})
	return unarrived, arrived, err
}

func children(s *zk.Stat) int {
	if s == nil {
		return 0
	}
	return int(s.NumChildren)
}

func changes(s *zk.Stat) int64 {
	if s == nil {
		return 0
	}
	return s.Pzxid
}
