package storm_test

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// fault is one thing that goes wrong, for d where it lasts.
type fault struct {
	name   string
	often  int
	strike func(f *forecast, h *house, d time.Duration)
}

// forecast is the goroutine that makes the faults.
type forecast struct {
	*actor
	srv    *servers
	frozen time.Time // or down, until then
}

// blow makes faults, one after the other, until the storm is over.
func (w *world) blow() {
	if w.srv.still {
		time.Sleep(lasts)
		return
	}
	f := &forecast{actor: &actor{w: w, rnd: w.stream(2)}, srv: w.srv}
	var lots []fault
	for _, x := range faults {
		for range x.often {
			lots = append(lots, x)
		}
	}
	pace := []time.Duration{300 * ms, time.Second, 3 * time.Second}[f.rnd.IntN(3)]
	for end := time.Now().Add(lasts); time.Now().Before(end) && !w.spoilt.Load(); time.Sleep(f.upTo(pace)) {
		h := w.houses[f.rnd.IntN(len(w.houses))]
		d := f.upTo([]time.Duration{50 * ms, time.Second, 12 * time.Second}[f.rnd.IntN(3)])
		x := lots[f.rnd.IntN(len(lots))]
		w.tell("FAULT %s, %s %x, %v", x.name, h, h.id(), d)
		x.strike(f, h, d)
	}
}

// later ends a fault, and before the storm is.
func (f *forecast) later(d time.Duration, heal func()) {
	f.w.healing.Add(1)
	time.AfterFunc(d, func() {
		defer f.w.healing.Done()
		heal()
	})
}

// down reports whether the server does not answer anybody; until then nothing else is done to all.
func (f *forecast) down(d time.Duration) bool {
	if time.Now().Before(f.frozen) {
		return true
	}
	f.frozen = time.Now().Add(d)
	return false
}

// member draws one of the servers.
func (f *forecast) member() *zktest.Server {
	if f.srv.e == nil {
		return f.srv.Server
	}
	return f.srv.all[f.rnd.IntN(len(f.srv.all))]
}

// moves has a member of an ensemble lag, be cut off from the others, or be elected.
func (f *forecast) moves(_ *house, d time.Duration) {
	if f.srv.e == nil || f.down(d) {
		return
	}
	i := f.rnd.IntN(len(f.srv.all))
	switch f.rnd.IntN(3) {
	case 0:
		if leader := f.srv.e.Leader(); leader >= 0 && leader != i {
			f.w.tell("member %d lags for %v", i, d)
			f.later(d, f.srv.e.Lag(i))
		}
	case 1:
		f.w.tell("member %d is cut off for %v", i, d)
		f.later(d, f.srv.e.Isolate(i))
	default:
		if f.srv.e.Leader() >= 0 {
			f.w.tell("member %d is elected", i)
			f.srv.e.ElectLeader(i)
		}
	}
}

var faults = []fault{
	{"expire", 3, func(f *forecast, h *house, _ time.Duration) {
		id := h.id()
		f.w.meter.doom(id)
		f.srv.Expire(id)
	}},
	{"expire silently", 1, func(f *forecast, h *house, d time.Duration) {
		id := h.id()
		f.w.meter.doom(id)
		f.later(d, f.srv.ExpireSilently(id))
	}},
	{"disconnect", 4, func(f *forecast, h *house, _ time.Duration) { f.srv.Disconnect(h.id()) }},
	{"partition", 4, func(f *forecast, h *house, d time.Duration) { f.later(d, f.srv.Partition(h.id())) }},
	{"make mute", 2, func(f *forecast, h *house, d time.Duration) { f.later(d, f.srv.DropRequests(h.id())) }},
	{"make deaf", 2, func(f *forecast, h *house, d time.Duration) { f.later(d, f.srv.DropReplies(h.id())) }},
	{"freeze", 2, func(f *forecast, _ *house, d time.Duration) {
		if m := f.member(); !f.down(d) {
			f.later(d, m.Freeze())
		}
	}},
	{"restart", 1, func(f *forecast, _ *house, _ time.Duration) {
		if m := f.member(); !f.down(0) {
			m.Restart()
		}
	}},
	{"stop", 1, func(f *forecast, _ *house, d time.Duration) {
		if m := f.member(); !f.down(d) {
			m.Stop()
			f.later(d, m.Restart)
		}
	}},
	{"refuse connections", 1, func(f *forecast, h *house, d time.Duration) {
		f.later(d, f.srv.Refuse())
		f.srv.Disconnect(h.id())
	}},
	{"accept and close", 1, func(f *forecast, h *house, d time.Duration) {
		if f.w.shut.CompareAndSwap(false, true) {
			f.later(d, func() { f.w.shut.Store(false) })
			f.srv.Disconnect(h.id())
		}
	}},
	{"move the servers", 4, (*forecast).moves},
	{"slow down", 2, func(f *forecast, h *house, d time.Duration) {
		h.slow(f.upTo(max(d/8, 2*ms)), f.upTo(max(d/8, 2*ms)))
		f.later(d, h.calm)
	}},
	{"strike", 12, (*forecast).fate},
	{"lose a reply and hold the repetition", 4, func(f *forecast, h *house, d time.Duration) {
		f.w.meter.strike(h.id(), &strike{op: f.kind(), skip: f.rnd.IntN(2), Verdict: zktest.Verdict{Fate: zktest.LoseReply}, then: &zktest.Verdict{Hold: f.opens(d)}})
	}},
	{"lose a reply and the session", 2, func(f *forecast, h *house, d time.Duration) {
		id := h.id()
		f.w.meter.strike(id, &strike{op: f.kind(), Verdict: zktest.Verdict{Fate: zktest.LoseReply}})
		f.later(d/4, func() {
			f.w.meter.doom(id)
			f.srv.Expire(id)
		})
	}},
	{"cancel", 6, (*forecast).cancels},
	{"close", 1, func(f *forecast, h *house, _ time.Duration) {
		if h.closing.CompareAndSwap(false, true) {
			f.w.healing.Go(func() {
				defer h.closing.Store(false)
				h.close()
				h.open()
			})
		}
	}},
	{"remove a node", 2, (*forecast).removes},
	{"remove all nodes", 2, (*forecast).chases},
	{"answer the same again and again", 3, (*forecast).harps},
}

// kind draws a kind of request.
func (f *forecast) kind() zktest.Op {
	return []zktest.Op{zktest.Any, zktest.Create, zktest.Delete, zktest.Multi, zktest.GetChildren, zktest.SetData, zktest.Sync}[f.rnd.IntN(7)]
}

// opens is a channel that is closed after d.
func (f *forecast) opens(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	f.later(d, func() { close(c) })
	return c
}

// fate strikes one request.
func (f *forecast) fate(h *house, d time.Duration) {
	fates := []zktest.Verdict{
		{Fate: zktest.LoseRequest}, {Fate: zktest.LoseReply}, {Fate: zktest.Duplicate}, {Delay: d}, {DelayReply: d},
		{Delay: d, Fate: zktest.LoseReply}, {Delay: d, Fate: zktest.LoseRequest}, {Delay: d, Queued: true},
		{Delay: d, Queued: true, Fate: zktest.LoseReply}, {Hold: nil},
	}
	v := fates[f.rnd.IntN(len(fates))]
	if v.Fate == zktest.Duplicate && f.w.single {
		v.Fate = zktest.LoseReply
	}
	if v == (zktest.Verdict{}) {
		v.Hold = f.opens(d)
	}
	f.w.meter.strike(h.id(), &strike{op: f.kind(), skip: f.rnd.IntN(3), Verdict: v})
}

// harps has the server give the same answer, which settles nothing, to all requests of a kind; or say of a base node that there is none.
func (f *forecast) harps(h *house, d time.Duration) {
	code := []zktest.Code{zktest.CodeSessionMoved, zktest.CodeThrottled}[f.rnd.IntN(2)]
	s := &strike{op: f.kind(), all: true, Verdict: zktest.Verdict{Fate: zktest.Fail, Code: code}}
	if p := f.w.parts[f.rnd.IntN(len(f.w.parts))]; p.base != "" && f.rnd.IntN(2) == 0 {
		s.op, s.path, s.Code, s.lags = zktest.GetData, p.base, zktest.CodeNoNode, p.believes
	}
	id := h.id()
	f.w.tell("every %v %s of %x gets %d", s.op, s.path, id, s.Code)
	h.unsettle(d)
	f.w.meter.strike(id, s)
	f.later(d, func() { f.w.meter.spare(id, s) })
}

// chases removes all that a session queues, as soon as it does.
func (f *forecast) chases(h *house, d time.Duration) {
	if p := f.w.parts[f.rnd.IntN(len(f.w.parts))]; p.deletable != "" {
		id := h.id()
		f.w.tell("all of %x in %s is removed", id, p.deletable)
		f.w.meter.chase(id, p.deletable)
		f.later(d, func() { f.w.meter.chase(id, "") })
	}
}

// cancels ends the context of a call.
func (f *forecast) cancels(_ *house, _ time.Duration) {
	luck := f.rnd.Uint64()
	f.w.mu.Lock()
	var some []*call
	for _, c := range f.w.calls {
		if c.cancel != nil && time.Now().Before(c.limit) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		f.w.mu.Unlock()
		return
	}
	c := some[luck%uint64(len(some))]
	c.limit = time.Now()
	f.w.mu.Unlock()
	f.w.tell("%s is cancelled", c)
	c.cancel()
}

// removes deletes a node externally.
func (f *forecast) removes(_ *house, _ time.Duration) {
	luck := f.rnd.Uint64()
	for _, p := range f.w.parts {
		names := f.srv.Children(p.deletable)
		if p.deletable == "" || len(names) == 0 {
			continue
		}
		node := p.deletable + "/" + names[luck%uint64(len(names))]
		f.w.tell("%s is removed", node)
		f.w.meter.remove(node)
		f.w.removes(node)
		return
	}
}
