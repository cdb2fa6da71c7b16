package storm_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
)

const cronPath = "/storm/cron"

// schedules are one job, which all processes have.
type schedules struct {
	every time.Duration
	once  bool // AtMostOnce

	mu     sync.Mutex
	newest *ticked          // the last run
	last   map[bool]*ticked // the last tick, and the last run out of turn
	asked  int              // runs out of turn that have begun
}

// ticked is a run of a tick.
type ticked struct {
	at    time.Time
	token zksync.Token
	l     *zksync.Lease
}

func joinCron(w *world) *part {
	x := &schedules{every: []time.Duration{500 * ms, 2 * time.Second}[w.rnd.IntN(2)], once: w.rnd.IntN(3) == 0, last: map[bool]*ticked{}}
	return &part{actors: 4, act: x.act, use: x.use}
}

// object is the actor's own, so it knows who runs.
func (x *schedules) object(a *actor) *zkcron.Cron {
	return thing(a.h, "cron"+a.name, func(s *zksync.Session) *zkcron.Cron {
		c := zkcron.New(s, cronPath)
		// Each process has a timeout and a jitter of its own.
		opts := []zkcron.JobOption{zkcron.WithMissed(zkcron.Skip), zkcron.WithTimeout(time.Duration(1+len(a.name)) * 150 * ms), zkcron.WithJitter(x.every / 4)}
		if x.once {
			opts = append(opts, zkcron.WithAtMostOnce())
		}
		c.Every("job", x.every, func(ctx context.Context, t zkcron.Tick) error { return x.runs(ctx, a, t) }, opts...)
		return c
	})
}

func (x *schedules) act(a *actor) {
	if a.oneIn(5) {
		a.ask("Last", func(ctx context.Context) error { _, err := x.object(a).Last(ctx, "job"); return err }, zksync.ErrNotFound)
		return
	}
	if a.oneIn(4) {
		// It waits as long as no process runs the job.
		a.askFor(a.upTo(10*time.Second), "RunNow", func(ctx context.Context) error { return x.runNow(ctx, a) }, zkcron.ErrFailed)
		return
	}
	// The end of a tick is recorded before Run returns, for which it waits as long as the session lives.
	a.askLate(a.upTo(10*time.Second), lingers, "Run", x.object(a).Run)
}

// runNow asks for a run: if the call says how one has ended, one has begun after the call.
func (x *schedules) runNow(ctx context.Context, a *actor) error {
	count := func() int { x.mu.Lock(); defer x.mu.Unlock(); return x.asked }
	before := count()
	err := x.object(a).RunNow(ctx, "job")
	if err == nil || errors.Is(err, zkcron.ErrFailed) {
		a.w.must(count() > before || x.once && err != nil, "RunNow returns %v without a run", err) // one that was begun, and given up before its function
	}
	return err
}

// runs is a run of a tick: ticks go forward, beside no other run, and none comes again of which it is known that it has ended.
func (x *schedules) runs(ctx context.Context, a *actor, t zkcron.Tick) error {
	l := zksync.LeaseFrom(ctx)
	me := &ticked{at: t.Scheduled, token: t.Token, l: l}
	h := &hold{a: a, path: cronPath, l: l}
	a.w.enters(h)
	defer h.ends()
	a.w.tell("%s/%s runs the tick of %v, token %s, out of turn: %t", a.h, a.name, t.Scheduled.Sub(a.w.began), t.Token, t.OutOfTurn)
	if t.OutOfTurn {
		x.mu.Lock()
		x.asked++
		x.mu.Unlock()
	}
	if !l.Valid() || a.w.meter.excused(l) {
		return errOwn
	}
	a.w.exclude(cronPath, h)
	x.mu.Lock()
	if o := x.newest; o != nil {
		a.w.must(me.token.Compare(o.token) > 0, "a tick with the token %s after %s", me.token, o.token)
	}
	if o := x.last[t.OutOfTurn]; o != nil {
		a.w.must(!me.at.Before(o.at), "the tick of %v runs after that of %v", me.at.Sub(a.w.began), o.at.Sub(a.w.began))
		again := me.at.Equal(o.at)
		a.w.must(!again || !x.once, "the tick of %v runs twice", me.at.Sub(a.w.began))
		a.w.must(!again || !o.l.Valid() || a.w.meter.excused(o.l), "the tick of %v runs again, and the one before holds", me.at.Sub(a.w.began))
	}
	x.newest, x.last[t.OutOfTurn] = me, me
	n := a.w.stamp()
	x.mu.Unlock()
	time.Sleep(time.Duration(n%8) * 100 * ms) // it may go on for as long after its context
	if n%6 == 0 {
		return errOwn
	}
	return nil
}

// use has all processes run for a while: each tick comes once.
func (x *schedules) use(w *world) {
	var mu sync.Mutex
	ticks := map[time.Time]int{}
	w.all("Run at last", len(w.houses), func(ctx context.Context, a *actor, _ int) error {
		c := zkcron.New(a.h.session(), cronPath+"-last")
		c.Every("job", time.Second, func(_ context.Context, t zkcron.Tick) error {
			mu.Lock()
			defer mu.Unlock()
			ticks[t.Scheduled]++
			return nil
		})
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		return nil
	})
	for at, n := range ticks {
		w.must(n == 1, "the tick of %v ran %d times at last", at.Sub(w.began), n)
	}
	w.must(len(ticks) >= 9, "%d ticks in ten seconds", len(ticks))
}
