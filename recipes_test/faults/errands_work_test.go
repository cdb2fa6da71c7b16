package faults_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zkrate"
	"github.com/go-menagerie/menagerie/zksync"
)

// workErrands are the types that divide work.
func workErrands() []errand {
	return []errand{
		{name: "zkqueue.Queue", least: 10, run: func(r *round) {
			var puts, got ledger
			a, b := zkqueue.New[string](r.a.s, site, zkqueue.WithCapacity(2)), zkqueue.New[string](r.b.s, site, zkqueue.WithCapacity(2))
			r.party(0, func() {
				for i := range 3 {
					name := fmt.Sprint("element ", i)
					puts.enters(r.a, name, func(ctx context.Context) error { return a.Put(ctx, name) })
				}
				r.a.until("the end", func(ctx context.Context) error { return a.Put(ctx, "end") })
			})
			r.party(5*ms, func() {
				for !r.over() {
					var d *zkqueue.Delivery[string]
					if r.b.does("Receive", func(ctx context.Context) (err error) { d, err = b.Receive(ctx); return err }) != nil {
						continue
					}
					time.Sleep(5 * ms)
					got.enters(r.b, d.Value, d.Ack)
					if d.Value == "end" {
						return
					}
				}
			})
			r.checks(func() {
				// What was received in vain is left, and so is what was put by a call of which nobody knew.
				left := ends(r, func(ctx context.Context) ([]string, error) {
					return zkqueue.New[string](r.last.s, site, zkqueue.WithCapacity(2)).Drain(ctx, 10)
				})
				all := append(slices.Clone(got.sure), left...)
				for _, name := range append(slices.Clone(puts.sure), "end") {
					if !slices.Contains(append(slices.Clone(all), got.maybe...), name) {
						r.wrong("%s is lost: %v are acknowledged, %v perhaps", name, got.sure, got.maybe)
					}
				}
				for i, name := range all {
					if slices.Contains(all[:i], name) && name != "end" {
						r.wrong("%s is there after it was acknowledged: %v", name, all)
					}
				}
			})
		}},
		{name: "zkqueue.Queue.Work", least: 20, run: workers},
		{name: "zkgroup.Group", least: 10, run: group, after: func(r *round) {
			for _, m := range ends(r, zkgroup.New(r.last.s, site).Members) {
				if !r.blow.Cancels && !r.blow.refuses {
					r.wrong("%s is still a member", m.ID)
				}
			}
		}},
		{name: "zkgroup.WithUntilDone", least: 10, run: untilDone},
		{name: "zkcron.Cron", least: 10, run: cron},
		{name: "zkcron.RunNow", least: 16, run: runNow},
		{name: "zkrate.Limiter", least: 10, run: limit},
	}
}

// limit has two processes use a limiter, and checks that they obey the limit together.
func limit(r *round) {
	const perSecond, burst = 20, 2
	var mu sync.Mutex
	var events []time.Time
	for i, h := range []*hand{r.a, r.b} {
		l := zkrate.New(h.s, site, perSecond, burst)
		r.party(time.Duration(i)*3*ms, func() {
			for range 4 {
				h.until("Wait", l.Wait)
				mu.Lock()
				events = append(events, time.Now())
				mu.Unlock()
			}
		})
	}
	r.checks(func() {
		extra, last := 0.0, r.began
		if r.blow.Deadly { // no process can know that its session has been ended by force
			extra = burst
		}
		level := burst + extra
		for _, at := range events {
			if level = min(level+perSecond*at.Sub(last).Seconds(), burst+extra) - 1; level < -1e-6 {
				r.wrong("more than %d a second and a burst of %d, by %.2f", perSecond, burst, -level)
			}
			last = at
		}
	})
}

// group has two members do four items.
func group(r *round) {
	items := []string{"1", "2", "3", "4"}
	var mu sync.Mutex
	ran := map[string]int{}
	ctx, cancel := context.WithCancel(context.Background())
	for i, h := range []*hand{r.a, r.b} {
		g := zkgroup.New(h.s, site)
		r.party(time.Duration(i)*3*ms, func() {
			var m *zkgroup.Membership
			id := []string{"a", "b"}[i]
			h.until("Join", func(ctx context.Context) (err error) { m, err = g.Join(ctx, zkgroup.Member{ID: id}); return err })
			if m == nil {
				return
			}
			for ctx.Err() == nil && !r.over() {
				_ = h.does("Assign", func(limited context.Context) error {
					limited, stop := context.WithCancel(limited)
					defer context.AfterFunc(ctx, stop)()
					return g.Assign(limited, m, items, func(_ context.Context, item string, _ *zksync.Lease) error {
						mu.Lock()
						defer mu.Unlock()
						ran[item]++
						return nil
					})
				})
			}
			h.until("Leave", m.Leave)
		})
	}
	r.party(0, func() {
		defer cancel()
		r.comes("all items are done", func() bool { mu.Lock(); defer mu.Unlock(); return len(ran) == len(items) })
		time.Sleep(time.Second)
	})
}

// untilDone has two members do four items, once. For one who comes later they are done.
func untilDone(r *round) {
	items := []string{"1", "2", "3", "4"}
	var mu sync.Mutex
	ran := map[string]int{}
	works := func(h *hand, id string, opts ...zkgroup.AssignOption) {
		g := zkgroup.New(h.s, site)
		var m *zkgroup.Membership
		h.until("Join", func(ctx context.Context) (err error) { m, err = g.Join(ctx, zkgroup.Member{ID: id}); return err })
		if m == nil {
			return
		}
		h.until("Assign", func(ctx context.Context) error {
			err := g.Assign(ctx, m, items, func(_ context.Context, item string, _ *zksync.Lease) error {
				mu.Lock()
				defer mu.Unlock()
				ran[item]++
				return nil
			}, append(opts, zkgroup.WithUntilDone())...)
			if err == nil {
				err = ctx.Err() // it returns nil then, too
			}
			return err
		})
		h.until("Leave", m.Leave)
	}
	r.party(0, func() { works(r.a, "a", zkgroup.WithConcurrency(1)) })
	r.party(3*ms, func() { works(r.b, "b") })
	r.checks(func() {
		if r.over() {
			return
		}
		works(r.last, "last")
		for _, item := range items {
			if n := ran[item]; n == 0 || n > 1 && !r.blow.Deadly && !r.blow.refuses { // else it may not be recorded
				r.wrong("item %s was done %d times", item, n)
			}
		}
	})
}

// cron has two processes run a job each second, and checks that its ticks come in order.
func cron(r *round) {
	var mu sync.Mutex
	var ticks []zkcron.Tick
	ctx, cancel := context.WithCancel(context.Background())
	for i, h := range []*hand{r.a, r.b} {
		c := zkcron.New(h.s, site)
		c.Every("job", time.Second, func(_ context.Context, t zkcron.Tick) error {
			mu.Lock()
			defer mu.Unlock()
			for _, before := range ticks {
				if !r.blow.Deadly && t.Token.Compare(before.Token) <= 0 || t.Scheduled.Before(before.Scheduled) {
					r.wrong("%v after %v", t, before)
				}
			}
			ticks = append(ticks, t)
			return nil
		})
		r.party(time.Duration(i)*3*ms, func() {
			for ctx.Err() == nil && !r.over() {
				_ = h.does("Run", func(limited context.Context) error {
					limited, stop := context.WithCancel(limited)
					defer context.AfterFunc(ctx, stop)()
					return c.Run(limited)
				}, context.Canceled)
			}
		})
	}
	r.party(0, func() {
		defer cancel()
		r.comes("three ticks", func() bool { mu.Lock(); defer mu.Unlock(); return len(ticks) >= 3 })
	})
}

// runNow has two processes run a job whose times are far away, and one of them ask twice for a run. Each call that succeeds has a
// run that begins after the call began.
func runNow(r *round) {
	var mu sync.Mutex
	var runs []zkcron.Tick
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(runs) }
	var asks *zkcron.Cron // of r.b
	ctx, cancel := context.WithCancel(context.Background())
	for i, h := range []*hand{r.a, r.b} {
		c := zkcron.New(h.s, site)
		c.At("job", "@yearly", func(_ context.Context, t zkcron.Tick) error {
			mu.Lock()
			defer mu.Unlock()
			for _, before := range runs {
				if !r.blow.Deadly && t.Token.Compare(before.Token) <= 0 || !t.OutOfTurn {
					r.wrong("%v after %v", t, before)
				}
			}
			runs = append(runs, t)
			return nil
		})
		r.party(time.Duration(i)*3*ms, func() {
			for ctx.Err() == nil && !r.over() {
				_ = h.does("Run", func(limited context.Context) error {
					limited, stop := context.WithCancel(limited)
					defer context.AfterFunc(ctx, stop)()
					return c.Run(limited)
				}, context.Canceled)
			}
		})
		asks = c
	}
	r.party(5*ms, func() {
		defer cancel()
		for range 2 {
			before := count()
			r.b.until("RunNow", func(ctx context.Context) error { return asks.RunNow(ctx, "job") })
			if count() == before && !r.over() && !r.blow.refuses {
				r.wrong("RunNow succeeded without a run")
			}
		}
	})
}
