package faults_test

import (
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// fault is something that happens when a certain request arrives at the server.
type fault struct {
	name   string
	strike func(w *world, c *client) zktest.Verdict
	lasts  time.Duration // how much longer everything may take

	reaped  bool // can be true only where the directory is empty, and so may have been removed
	forced  bool // ends a session that the server has just heard of: nobody can be told in time
	silent  bool // and not even soon
	refuses bool // the servers deny something, so a caller may get an error
	lingers bool // a session may have to time out before its nodes are gone
	parks   bool // the server keeps the request for long
	others  bool // means all clients but the one whose request it is
}

const (
	soon    = 500 * time.Millisecond // a reconnect with its back-off, a repeated request
	shorter = 3 * time.Second        // than the session timeout
	longer  = 15 * time.Second
	again   = 3 * time.Second // to connect, open a session and queue again after a long fault
)

// faultsFor returns every fault that can befall so many clients.
func faultsFor(clients int) []fault {
	return slices.DeleteFunc(faults(), func(f fault) bool { return f.others && clients == 1 })
}

func faults() []fault {
	list := []fault{
		{name: "lose-request", strike: fate(zktest.Verdict{Fate: zktest.LoseRequest}), lasts: soon},
		{name: "lose-reply", strike: fate(zktest.Verdict{Fate: zktest.LoseReply}), lasts: soon},
		{name: "duplicate", strike: fate(zktest.Verdict{Fate: zktest.Duplicate}), lasts: soon},
		{name: "hold-100ms", strike: held(zktest.Continue, 100*time.Millisecond), lasts: soon},
		{name: "hold-5s", strike: held(zktest.Continue, 5*time.Second), lasts: 5*time.Second + soon, parks: true},
		{name: "hold-then-lose-reply", strike: held(zktest.LoseReply, 100*time.Millisecond), lasts: soon},
		{name: "restart", lasts: shorter + again, strike: func(w *world, _ *client) zktest.Verdict {
			w.later(hop/2, func() {
				w.srv.Stop()
				w.later(time.Second, w.srv.Restart)
			})
			return zktest.Verdict{}
		}},
	}
	list = append(list, answers()...)
	list = append(list, ofClient()...)
	return append(list, ofServer()...)
}

func fate(v zktest.Verdict) func(*world, *client) zktest.Verdict {
	return func(*world, *client) zktest.Verdict { return v }
}

// held keeps a request in the server for a while.
func held(then zktest.Fate, d time.Duration) func(*world, *client) zktest.Verdict {
	return func(w *world, _ *client) zktest.Verdict {
		w.later(d, func() {})
		return zktest.Verdict{Fate: then, Delay: d}
	}
}

// answers are errors that the servers give instead of doing what they are asked for.
func answers() []fault {
	code := func(name string, code zktest.Code) fault {
		return fault{name: name, lasts: soon, strike: fate(zktest.Verdict{Fate: zktest.Fail, Code: code})}
	}
	ended := code("session-expired-error", -112)
	ended.lasts = timeout + again // the server does not mean it and keeps the nodes
	ended.lingers = true
	noNode := code("no-node-error", -101)
	noNode.reaped = true
	noAuth := code("no-auth-error", -102)
	noAuth.refuses = true
	return []fault{
		code("inconsistency-error", -2), code("throttled-error", -127), code("marshalling-error", -5), code("quota-error", -125),
		code("session-moved-error", -118), ended, noNode, noAuth,
	}
}

// ofClient are faults of one client, or of all but one.
func ofClient() []fault {
	type each struct {
		fault
		f func(w *world, c *client)
	}
	list := []each{
		{fault{name: "disconnect", lasts: soon}, func(w *world, c *client) { w.srv.Disconnect(c.s.ID()) }},
		{fault{name: "expire", lasts: soon, forced: true}, func(w *world, c *client) { w.srv.Expire(c.s.ID()) }},
		{fault{name: "expire-silently", lasts: longer + again, forced: true, silent: true, lingers: true}, func(w *world, c *client) {
			if id := c.s.ID(); id != 0 {
				w.later(longer, w.srv.ExpireSilently(id))
			}
		}},
		{fault{name: "partition-shorter", lasts: shorter + again}, func(w *world, c *client) { w.isolate(c, shorter) }},
		{fault{name: "partition-longer", lasts: longer + again, lingers: true}, func(w *world, c *client) { w.isolate(c, longer) }},
		{fault{name: "deaf-longer", lasts: longer + timeout + again, lingers: true}, func(w *world, c *client) { w.later(longer, w.srv.DropReplies(c.s.ID())) }},
		{fault{name: "mute-longer", lasts: longer + timeout + again, lingers: true}, func(w *world, c *client) { w.later(longer, w.srv.DropRequests(c.s.ID())) }},
		{fault{name: "cancel", lasts: soon}, func(_ *world, c *client) { c.cancelAll() }},
	}
	var out []fault
	for _, x := range list {
		for _, when := range []struct {
			name  string
			after time.Duration
		}{{"", 0}, {"-before-reply", hop / 2}, {"-after-reply", hop + hop/2}} {
			own, others := x.fault, x.fault
			own.name += when.name
			own.strike = func(w *world, c *client) zktest.Verdict {
				w.at(when.after, func() { x.f(w, c) })
				return zktest.Verdict{}
			}
			out = append(out, own)
			if when.after != hop/2 {
				continue
			}
			others.name += "-of-others"
			others.others = true
			others.strike = func(w *world, c *client) zktest.Verdict {
				w.at(when.after, func() {
					for _, o := range w.clients {
						if o != c {
							x.f(w, o)
						}
					}
				})
				return zktest.Verdict{}
			}
			out = append(out, others)
		}
	}
	return out
}

// at does something now or later. Now means before the request is applied.
func (w *world) at(d time.Duration, f func()) {
	if d == 0 {
		f()
		return
	}
	w.later(d, f)
}

func ofServer() []fault {
	var out []fault
	for _, d := range []time.Duration{shorter, longer} {
		name := map[time.Duration]string{shorter: "freeze-shorter", longer: "freeze-longer"}[d]
		for _, after := range []time.Duration{0, hop + hop/2} {
			f := fault{name: name, lasts: d + again, lingers: d == longer}
			if after > 0 {
				f.name += "-after-reply"
			}
			f.strike = func(w *world, _ *client) zktest.Verdict {
				w.at(after, func() {
					w.later(d, w.srv.Freeze())
				})
				return zktest.Verdict{}
			}
			out = append(out, f)
		}
	}
	return out
}
