package zkphaser

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-menagerie/menagerie/internal/errs"
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
//	action    a lock, for who runs the function of WithOnAdvance; phase-7 is gone then
//
// So a party is one node in one of two directories, and arriving is a move from the one to the
// other in one transaction; the Stats of both tell how many are left in the very moment after.
// Nothing else is written to for that, so parties that arrive at the same time do not get into
// each other's way. The advance is a transaction that deletes wait-7 and phase-7, which the
// servers refuse while somebody is in it; so it is made once, by whoever comes first.
func (p *Phaser) base() string             { return p.at.Full(p.path) }
func (p *Phaser) open() string             { return p.base() + "/open" }
func (p *Phaser) wait(phase int) string    { return fmt.Sprintf("%s/wait-%d", p.base(), phase) }
func (p *Phaser) arrivals(ph int) string   { return fmt.Sprintf("%s/phase-%d", p.base(), ph) }
func (p *Phaser) action() string           { return p.base() + "/action" }
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
	return record.Encode(phaserState{Phase: t.phase, Terminated: t.ended, Action: p.onAdvance != nil})
}

// check refuses a base node that is not that of such a phaser.
func (p *Phaser) check(s phaserState, ours bool) error {
	switch {
	case !ours || s.Phase < 0 || s.Phase > math.MaxInt32:
		return fmt.Errorf("%w: the base node is not that of a phaser; use a path of its own", zksync.ErrMisuse)
	case s.Action != (p.onAdvance != nil):
		return fmt.Errorf("%w: some use WithOnAdvance with this phaser and some do not", zksync.ErrMisuse)
	}
	return nil
}

// first is phase 0, and its nodes.
func (p *Phaser) first() (phaserState, []string) {
	return phaserState{Action: p.onAdvance != nil}, []string{p.open(), p.wait(0), p.arrivals(0), p.arrivals(1)}
}

// heardOf notes what was read.
func (p *Phaser) heardOf(v record.Version[phaserState], err error) (turn, error) {
	if err == nil {
		p.heard(v.T.Phase)
	}
	return turn{v.T.Phase, v.T.Terminated}, err
}

// peek reads the state, as far as this server knows; ok is false if there is none.
func (p *Phaser) peek(ctx context.Context, e *zkconn.Epoch) (t turn, ok bool, err error) {
	v, ok, err := p.terms.Peek(ctx, e)
	if ok {
		t, err = p.heardOf(v, err)
	}
	return t, ok, err
}

// learn reads the state, or founds the phaser. The server may lag.
func (p *Phaser) learn(ctx context.Context, e *zkconn.Epoch) (turn, error) {
	return p.heardOf(p.terms.Read(ctx, e))
}

// learnNow is learn by what the leader of the servers knows.
func (p *Phaser) learnNow(ctx context.Context, e *zkconn.Epoch) (turn, error) {
	return p.heardOf(p.terms.Latest(ctx, e))
}

// terminate terminates the phaser.
func (p *Phaser) terminate(ctx context.Context, e *zkconn.Epoch) error {
	for pace := (node.Pace{Free: 1}); ; {
		t, err := p.learnNow(ctx, e)
		if err != nil {
			return err
		}
		if t.ended {
			p.clear(e, t.phase)
			return nil
		}
		_, err = record.Transact(ctx, e,
			&zk.SetDataRequest{Path: p.base(), Data: p.encode(turn{t.phase, true}), Version: -1},
			&zk.DeleteRequest{Path: p.open(), Version: -1}, // before wait: see await
			&zk.DeleteRequest{Path: p.wait(t.phase), Version: -1},
		)
		switch {
		case err == nil:
			p.clear(e, t.phase)
			return nil
		case !record.Conflict(err): // else it has advanced, or terminated
			return err
		}
		if err := pace.Rest(ctx, e); err != nil {
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
	if p.at.Spawn(func() {
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

// Phase is the phaser's phase, negative if it has terminated. Like Terminated, the numbers of parties and Attendance
// it is what the leader of the servers knew at some instant of the call. It blocks for the servers' answers, until ctx ends (the
// error wraps the context's error) or the session is closed (zksync.ErrClosed).
func (p *Phaser) Phase(ctx context.Context) (int, error) {
	t, err := p.look(ctx)
	return number(t, err), errs.Wrap("phase", p.path, err)
}

// Terminated reports whether the phaser has terminated.
func (p *Phaser) Terminated(ctx context.Context) (bool, error) {
	t, err := p.look(ctx)
	return t.ended, errs.Wrap("terminated", p.path, err)
}

// look is learnNow without founding the phaser.
func (p *Phaser) look(ctx context.Context) (t turn, err error) {
	err = p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) (err error) {
		v, there, err := p.terms.Ask(ctx, e)
		if there {
			t, err = p.heardOf(v, err)
		}
		return err
	})
	return t, err
}

// RegisteredParties is the number of registered parties, in all processes. In a phaser that has
// terminated the numbers of parties mean nothing.
func (p *Phaser) RegisteredParties(ctx context.Context) (int, error) {
	unarrived, arrived, err := p.census(ctx)
	return counted(unarrived+arrived, err), errs.Wrap("registered", p.path, err)
}

// ArrivedParties is the number of registered parties that have arrived at the phase.
func (p *Phaser) ArrivedParties(ctx context.Context) (int, error) {
	_, arrived, err := p.census(ctx)
	return counted(arrived, err), errs.Wrap("arrived", p.path, err)
}

// UnarrivedParties is the number of registered parties that have not arrived at the phase.
func (p *Phaser) UnarrivedParties(ctx context.Context) (int, error) {
	unarrived, _, err := p.census(ctx)
	return counted(unarrived, err), errs.Wrap("unarrived", p.path, err)
}

// Attendance returns the owners of the parties that have arrived at the phase, and those of the missing: registered parties that have not. Both are
// empty if the phaser has terminated. It blocks and fails like Phase, and also reads the node of each party. While other parties come and go, the
// phaser may never have had exactly that state.
func (p *Phaser) Attendance(ctx context.Context) (arrived, missing []zksync.Owner, err error) {
	err = p.inOnePhase(ctx, func(ctx context.Context, e *zkconn.Epoch, t turn) (bool, error) {
		if arrived, missing = nil, nil; t.ended {
			return true, nil
		}
		// In this order: whoever arrives in between is in both lists, and not in none. After an advance the second
		// list would be of the phase before.
		late, err := p.ownersIn(ctx, e, p.arrivals(t.phase))
		if err != nil {
			return false, err
		}
		if arrived, err = p.ownersIn(ctx, e, p.arrivals(after(t.phase))); err == nil {
			missing = late
		}
		return true, err
	})
	return arrived, missing, errs.Wrap("attendance", p.path, err)
}

// inOnePhase has look look at a phase, until it says that it has seen it and that phase has not ended meanwhile. It
// makes nothing, and does nothing if nobody has used the phaser.
func (p *Phaser) inOnePhase(ctx context.Context, look func(context.Context, *zkconn.Epoch, turn) (seen bool, err error)) error {
	return p.at.In(ctx, func(ctx context.Context, e *zkconn.Epoch) error {
		if err := record.Synced(ctx, e, p.base()); err != nil {
			return err
		}
		for pace := (node.Pace{Free: 1}); ; {
			t, ok, err := p.peek(ctx, e)
			if err != nil || !ok {
				return err
			}
			seen, err := look(ctx, e, t)
			if err != nil {
				return err
			}
			if now, _, err := p.peek(ctx, e); err != nil || seen && now == t {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
	})
}

func (p *Phaser) ownersIn(ctx context.Context, e *zkconn.Epoch, dir string) ([]zksync.Owner, error) {
	names, _, err := e.Children(ctx, dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	return record.Owners(ctx, e, dir, names)
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
	err = p.inOnePhase(ctx, func(ctx context.Context, e *zkconn.Epoch, t turn) (bool, error) {
		var seen [3]*zk.Stat
		for i, phase := range []int{t.phase, after(t.phase), t.phase} {
			st, _, err := e.Exists(ctx, p.arrivals(phase))
			if err != nil {
				return false, err
			}
			seen[i] = st
		}
		unarrived, arrived = children(seen[0]), children(seen[1])
		return children(seen[0]) == children(seen[2]) && changes(seen[0]) == changes(seen[2]), nil
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
