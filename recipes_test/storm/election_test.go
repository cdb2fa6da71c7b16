package storm_test

import (
	"context"
	"errors"
	"time"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

const electionPath = "/storm/election"

// elections is one election.
type elections struct{ opts []zksync.Option }

func joinElection(w *world) *part {
	x := elections{}
	if w.rnd.IntN(2) == 0 {
		x.opts = []zksync.Option{zksync.WithMaxHold(200*ms + upTo(w.rnd, 5*time.Second)), zksync.WithLockDelay(upTo(w.rnd, 2*time.Second))}
	}
	return &part{actors: 4, act: x.act, use: x.use, queues: []string{electionPath}, deletable: electionPath, turns: []string{"Campaign", "Run"}}
}

func (x elections) object(a *actor) *zkelection.Election {
	return thing(a.h, "election", func(s *zksync.Session) *zkelection.Election {
		return zkelection.New(s, electionPath, zkelection.Candidate{ID: a.h.String()}, x.opts...)
	})
}

func (x elections) act(a *actor) {
	e := x.object(a)
	switch a.rnd.IntN(7) {
	case 6:
		a.revokes(electionPath)
	case 0:
		x.observe(a, e)
	case 1, 2:
		a.ask("Run", func(ctx context.Context) error {
			return e.Run(ctx, func(_ context.Context, l *zksync.Lease) error {
				h := a.granted(electionPath, l, false, 0, 0)
				defer h.ends()
				time.Sleep(a.upTo(50 * ms)) // it may go on for as long after its context
				return errOwn
			})
		}, errOwn)
	case 3:
		x.lead(a, "TryCampaign", e.TryCampaign)
	case 4:
		a.ask("Candidates", func(ctx context.Context) error { _, err := e.Candidates(ctx); return err })
	default:
		x.lead(a, "Campaign", e.Campaign)
	}
}

func (x elections) lead(a *actor, what string, f func(context.Context) (*zksync.Lease, error)) {
	var l *zksync.Lease
	c := a.ask(what, func(ctx context.Context) (err error) { l, err = f(ctx); return err }, zksync.ErrNotAcquired)
	if c.err == nil {
		a.keep(a.granted(electionPath, l, false, 0, 0))
	}
}

// observe hears of leaders in their order.
func (x elections) observe(a *actor, e *zkelection.Election) {
	a.askFor(a.upTo(8*time.Second), "Observe", func(ctx context.Context) error {
		var last zksync.Token
		for c, err := range e.Observe(ctx) {
			if errors.Is(err, zksync.ErrNoLeader) {
				continue
			}
			if err != nil {
				return err
			}
			a.w.must(c.Token.Compare(last) >= 0, "Observe: leader %s after %s", c.Token, last)
			last = c.Token
		}
		return ctx.Err()
	})
}

func (x elections) use(w *world) {
	w.all("Campaign at last", 2*len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		l, err := x.object(a).Campaign(ctx)
		if err != nil {
			return err
		}
		a.granted(electionPath, l, false, 0, 0).ends()
		return l.Unlock()
	})
}
