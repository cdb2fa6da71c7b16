package faults_test

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// meetingErrands are the types at which processes meet. Where a party is struck dead, or gives up, its meeting fails by
// contract: then all hear of it, in time.
func meetingErrands() []errand {
	return []errand{
		{name: "zkbarrier.Barrier", least: 6, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				b := zkbarrier.NewBarrier(h.s, site, 2)
				r.party(time.Duration(i)*5*ms, func() {
					_ = h.does("Await", func(ctx context.Context) error { _, err := b.Await(ctx); return err }, r.mayBreak()...)
				})
			}
		}},
		{name: "zkbarrier.DoubleBarrier", least: 6, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				b := zkbarrier.NewDoubleBarrier(h.s, site, 2)
				r.party(time.Duration(i)*5*ms, func() {
					if h.does("Enter", b.Enter, r.mayBreak()...) == nil {
						_ = h.does("Leave", b.Leave, r.mayBreak()...)
					}
				})
			}
		}},
		{name: "zklatch.Latch", least: 4, run: func(r *round) {
			for i, h := range []*hand{r.a, r.b} {
				l := zklatch.New(h.s, site, 2)
				r.party(time.Duration(i)*5*ms, func() {
					h.until("CountDown", l.CountDown)
					h.until("Wait", l.Wait)
				})
			}
		}},
		{name: "zklatch.Gate", least: 4, run: func(r *round) {
			a, b := zklatch.NewGate(r.a.s, site), zklatch.NewGate(r.b.s, site)
			r.party(0, func() {
				r.a.until("Close", a.Close)
				time.Sleep(20 * ms)
				r.a.until("Open", a.Open)
			})
			r.party(10*ms, func() { r.b.until("Wait", b.Wait) })
		}, after: func(r *round) {
			r.last.until("IsClosed", func(ctx context.Context) error {
				closed, err := zklatch.NewGate(r.last.s, site).IsClosed(ctx)
				if closed && err == nil {
					r.wrong("the gate was opened and is closed")
				}
				return err
			})
		}},
		{name: "zkphaser.Phaser", least: 8, run: func(r *round) {
			for _, h := range []*hand{r.a, r.b} {
				p := zkphaser.New(h.s, site)
				r.party(0, func() {
					call := func(what string, f func(ctx context.Context) (int, error)) bool {
						return h.does(what, func(ctx context.Context) error { _, err := f(ctx); return err }, r.mayBreak()...) == nil
					}
					if !call("Register", p.Register) {
						return
					}
					time.Sleep(time.Until(r.began.Add(10 * time.Second)))
					_ = call("ArriveAndAwaitAdvance", p.ArriveAndAwaitAdvance) && call("ArriveAndDeregister", p.ArriveAndDeregister)
				})
			}
		}},
		{name: "zkwaitgroup.WaitGroup", least: 6, run: func(r *round) {
			a, b := zkwaitgroup.New(r.a.s, site), zkwaitgroup.New(r.b.s, site)
			added := make(chan bool, 1)
			r.party(0, func() {
				ok := r.a.does("Add", func(ctx context.Context) error { return a.AddContext(ctx, 1) }) == nil
				added <- ok
				if ok {
					time.Sleep(20 * ms)
					_ = r.a.does("Done", a.DoneContext, r.mayBreak()...)
				}
			})
			r.party(0, func() {
				if <-added {
					_ = r.b.does("Wait", b.WaitContext, r.mayBreak()...)
				}
			})
		}},
	}
}

// mayBreak are the errors of a meeting from which somebody was torn.
func (r *round) mayBreak() []error {
	if r.blow.Deadly || r.blow.Cancels || r.blow.refuses {
		return []error{zksync.ErrBroken, zksync.ErrLost, zksync.ErrSessionExpired, context.DeadlineExceeded}
	}
	return nil
}
