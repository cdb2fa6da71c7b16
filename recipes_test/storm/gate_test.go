package storm_test

import (
	"context"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
)

const gatePath = "/storm/gate"

// gates is one gate, and the history of it.
type gates struct {
	mu  sync.Mutex
	ops []porcupine.Operation
}

// passage is what was done to a gate, or seen of it.
type passage struct {
	sets, lifts bool
	again       bool // what a Set may do besides, as long as it has not returned: close what was lifted since
	closed      bool // as it was seen
}

// gateModel is open or closed.
var gateModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{false} },
	Step: func(state, input, _ any) []any {
		p := input.(passage)
		switch {
		case p.again:
			return []any{state, true}
		case p.sets:
			return []any{true}
		case p.lifts:
			return []any{false}
		case state.(bool) == p.closed:
			return []any{state}
		}
		return nil
	},
}).ToModel()

func joinGate(*world) *part {
	x := &gates{}
	return &part{actors: 4, act: x.act, release: x.release, use: x.use}
}

func (x *gates) object(a *actor) *zklatch.Gate {
	return thing(a.h, "gate", func(s *zksync.Session) *zklatch.Gate { return zklatch.NewGate(s, gatePath) })
}

// note enters what a call did. What failed to look says nothing, what failed to change may yet do it.
func (x *gates) note(c *call, p passage) {
	op := porcupine.Operation{Input: p, Call: c.from, Return: c.to}
	if c.err != nil {
		if !p.sets && !p.lifts {
			return
		}
		op.Return = never
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ops = append(x.ops, op)
	if p.sets {
		x.ops = append(x.ops, porcupine.Operation{Input: passage{again: true}, Call: c.from, Return: c.to})
	}
}

func (x *gates) act(a *actor) {
	g := x.object(a)
	switch a.rnd.IntN(6) {
	case 0, 1:
		x.note(a.ask("Close", g.Close), passage{sets: true})
	case 2:
		x.lift(a)
	case 3, 4:
		var p passage
		x.note(a.ask("IsClosed", func(ctx context.Context) (err error) { p.closed, err = g.IsClosed(ctx); return err }), p)
		if p.closed && a.oneIn(2) {
			x.lift(a)
		}
	default:
		x.note(a.ask("Wait", g.Wait), passage{})
	}
}

func (x *gates) lift(a *actor) { x.note(a.ask("Open", x.object(a).Open), passage{lifts: true}) }

func (x *gates) release(a *actor) { x.lift(a) }

// use looks back: the history must be that of one gate.
func (x *gates) use(w *world) {
	w.all("Open at last", 1, func(ctx context.Context, a *actor, _ int) error {
		return x.object(a).Open(ctx)
	})
	w.all("Wait at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error { return x.object(a).Wait(ctx) })
	x.mu.Lock()
	defer x.mu.Unlock()
	result := porcupine.CheckOperationsTimeout(gateModel, x.ops, time.Minute)
	w.must(result == porcupine.Ok, "the history of the gate is that of no gate (%v)", result)
}
