package zkphaser

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/gate"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// The nodes of a phaser. Its base node has the phase, and is never deleted. In phase 7 these nodes are below it:
//
//	open      until the phaser has terminated
//	wait-7    watched by all that wait for the advance; it is written to only in the transaction that deletes it
//	phase-7   the parties that have still to arrive at phase 7, each an ephemeral node
//	phase-8   those that have arrived at phase 7, and so have to arrive at phase 8
//	action    a lock for the process that runs the function of WithOnAdvance; phase-7 is gone then
//	turn      exists while a call that was refused several times makes a change, and no phase ends: see gate.Turn
//	turns     the queue for that
//
// So a party is one node in one of two directories. Its arrival is a transaction that moves the node from one
// directory to the other. The Stats of both in the answer show how many parties are left at that very moment. No
// other node is written to, so parties that arrive at the same time do not disturb each other. The advance is a
// transaction that deletes wait-7 and phase-7. The servers refuse it while there is a party in phase-7. So one
// process makes the advance, the first that tries after the last arrival.
func (p *Phaser) base() string             { return p.at.Full(p.at.Path) }
func (p *Phaser) open() string             { return p.base() + "/open" }
func (p *Phaser) wait(phase int) string    { return fmt.Sprintf("%s/wait-%d", p.base(), phase) }
func (p *Phaser) arrivals(ph int) string   { return fmt.Sprintf("%s/phase-%d", p.base(), ph) }
func (p *Phaser) action() string           { return p.base() + "/action" }
func (p *Phaser) node(x *party) string     { return p.arrivals(x.at) + "/" + x.name }
func (p *Phaser) nextNode(x *party) string { return p.arrivals(after(x.at)) + "/" + x.name }

// turn is that of a new call.
func (p *Phaser) turn() *gate.Turn { return &gate.Turn{Node: p.base() + "/turn", Line: p.line} }

// state is the data of the base node.
type state struct {
	Phase      int  `json:"phase"`
	Terminated bool `json:"terminated,omitempty"`
	// Action means that the users of the phaser have a function that is called when the phaser advances. A state that
	// this process makes itself may leave it out, because encode sets it.
	Action bool `json:"action,omitempty"`
}

// number is the phase as users see it.
func (t state) number() int {
	if t.Terminated {
		return math.MinInt32 + t.Phase
	}
	return t.Phase
}

// after is the number of the next phase.
func after(phase int) int { return (phase + 1) & math.MaxInt32 }

// before reports whether phase a comes before phase b, for two phases that are near each
// other: after the greatest number comes 0.
func before(a, b int) bool {
	d := (b - a) & math.MaxInt32
	return d > 0 && d < 1<<30
}

// encode is the data of the base node for a state.
func (p *Phaser) encode(t state) []byte {
	t.Action = p.onAdvance != nil
	return record.Encode(t)
}

// check refuses a phaser with other parameters.
func (p *Phaser) check(s state) error {
	switch {
	case s.Phase < 0 || s.Phase > math.MaxInt32:
		return errs.Misuse("the phaser has phase %d, which none of ours has; use another path", s.Phase)
	case s.Action != (p.onAdvance != nil):
		return errs.Misuse("some use WithOnAdvance with this phaser and some do not")
	}
	return nil
}

// first is phase 0, and its nodes.
func (p *Phaser) first() (state, []string) {
	return state{Action: p.onAdvance != nil}, []string{p.open(), p.wait(0), p.arrivals(0), p.arrivals(1)}
}

// learn reads the state as the leader of the servers knows it. If the phaser is gone, the error is errRemoved.
func (p *Phaser) learn(ctx context.Context, e *zkconn.Epoch) (state, error) {
	v, there, err := p.terms.Ask(ctx, e)
	switch {
	case err == nil && !there:
		err = errRemoved
	case err == nil:
		p.note(e, v.T)
	}
	return v.T, err
}

// seen is learn after a server has reported that a node of the phase is gone. The transaction that ends a phase writes the
// state, too, so that server has the state, and need not catch up with the leader first. If the session has moved to another
// server that lags, that one still shows the phase with its nodes. Then the watches are set there, and it reports when it has caught up.
func (p *Phaser) seen(ctx context.Context, e *zkconn.Epoch) (state, error) {
	v, there, err := p.terms.Peek(ctx, e)
	if err != nil || !there {
		return p.learn(ctx, e)
	}
	p.note(e, v.T)
	return v.T, nil
}

// found is learn, but makes the phaser if there is none.
func (p *Phaser) found(ctx context.Context, e *zkconn.Epoch) (state, error) {
	v, err := p.terms.Latest(ctx, e)
	if err == nil {
		p.note(e, v.T)
	}
	return v.T, err
}

// note records the newest state. In a phaser that has terminated our parties are not needed any more, and note has them removed.
func (p *Phaser) note(e *zkconn.Epoch, t state) {
	p.mu.Lock()
	p.phase = t.Phase
	clear := t.Terminated && len(p.parties) > 0
	p.mu.Unlock()
	if clear {
		p.clear(e, t.Phase)
	}
}

// terminate terminates the phaser.
func (p *Phaser) terminate(ctx context.Context, e *zkconn.Epoch) (err error) {
	turn, doubt := p.turn(), false // it may have been terminated by this call
	defer turn.Leave()
	defer func() { err = errs.InDoubt(err, doubt) }()
	for pace := (node.Pace{Free: 1}); ; {
		if err := turn.Take(ctx, e); err != nil {
			return err
		}
		t, err := p.found(ctx, e)
		if err == nil && !t.Terminated {
			t.Terminated = true
			_, err = node.RepeatChange(ctx, e,
				&zk.SetDataRequest{Path: p.base(), Data: p.encode(t), Version: -1},
				&zk.DeleteRequest{Path: p.open(), Version: -1}, // before wait: await depends on this order
				&zk.DeleteRequest{Path: p.wait(t.Phase), Version: -1},
			)
		}
		if err == nil {
			p.clear(e, t.Phase)
		}
		if !record.Conflict(err) { // after a conflict the phaser has advanced or terminated: look again
			return err
		}
		doubt = doubt || errs.Ambiguous(err)
		turn.Refused()
		if err := pace.Rest(ctx, e); err != nil {
			return err
		}
	}
}

// look reads the state; if there is no phaser, it returns the state of a new one.
func (p *Phaser) look(ctx context.Context, op string) (t state, err error) {
	err = p.at.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		v, _, err := p.terms.Ask(ctx, e)
		t = v.T
		return err
	})
	return t, err
}

// inOnePhase calls look with the present state, until look reports that it has seen the phase and the state is the same
// after it. It makes nothing, and does not call look if there is no phaser.
func (p *Phaser) inOnePhase(ctx context.Context, op string, look func(context.Context, *zkconn.Epoch, state) (seen bool, err error)) error {
	return p.at.Run(ctx, op, func(ctx context.Context, e *zkconn.Epoch) error {
		v, there, err := p.terms.Ask(ctx, e)
		for pace := (node.Pace{Free: 1}); err == nil && there; {
			seen, err := look(ctx, e, v.T)
			if err != nil {
				return err
			}
			was := v.T
			if v, there, err = p.terms.Peek(ctx, e); err != nil || seen && v.T == was {
				return err
			}
			if err := pace.Rest(ctx, e); err != nil {
				return err
			}
		}
		return err
	})
}

// ownersIn reads the owners of the parties in a directory; none if the directory does not exist.
func (p *Phaser) ownersIn(ctx context.Context, e *zkconn.Epoch, dir string) ([]zksync.Owner, error) {
	names, _, err := e.Children(ctx, dir)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	return record.Owners[zksync.Owner](ctx, e, dir, names)
}

// census counts the parties. It reads the directory of those that have still to arrive before and after the other one.
// An arrival changes both directories. So if the first is unchanged, the count in the second is of the same moment.
func (p *Phaser) census(ctx context.Context, op string) (unarrived, arrived int, err error) {
	err = p.inOnePhase(ctx, op, func(ctx context.Context, e *zkconn.Epoch, t state) (bool, error) {
		// A Stat's Pzxid is the transaction that last made or deleted a child.
		var seen [3]*zk.Stat
		for i, phase := range []int{t.Phase, after(t.Phase), t.Phase} {
			if seen[i], err = p.stat(ctx, e, phase); err != nil {
				return false, err
			}
		}
		unarrived, arrived = int(seen[0].NumChildren), int(seen[1].NumChildren)
		return seen[0].Pzxid == seen[2].Pzxid, nil
	})
	return unarrived, arrived, err
}

// stat is the Stat of the directory of a phase, the zero Stat if there is none.
func (p *Phaser) stat(ctx context.Context, e *zkconn.Epoch, phase int) (*zk.Stat, error) {
	s, there, err := e.Exists(ctx, p.arrivals(phase))
	if err != nil || !there {
		return &zk.Stat{}, err
	}
	return s, nil
}
