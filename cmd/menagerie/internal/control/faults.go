package control

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// fault is what lasts until /heal.
type fault struct {
	name    string
	session int64 // whose network it is; 0 for other faults
	end     func()

	rule *zktest.Interception // of requests; else nil
	once bool                 // it acts on one request
}

func (f *fault) String() string {
	if f.rule == nil {
		return f.name
	}
	return fmt.Sprintf("%s: matched %d, acted on %d", f.name, f.rule.Matched(), f.rule.Fired())
}

// over reports whether the fault has no effect any more.
func (f *fault) over() bool { return f.once && f.rule.Fired() > 0 }

func (c *Control) add(f *fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
}

// take removes the faults that are meant, and returns them.
func (c *Control) take(meant func(*fault) bool) (taken []*fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rest []*fault
	for _, f := range c.faults {
		if meant(f) {
			taken = append(taken, f)
		} else {
			rest = append(rest, f)
		}
	}
	c.faults = rest
	return taken
}

// active describes the faults that still have, or await, an effect.
func (c *Control) active() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	texts := []string{}
	for _, f := range c.faults {
		if !f.over() {
			texts = append(texts, f.String())
		}
	}
	return texts
}

// living reads the id of a session that lives.
func (c *Control) living(f fields) (zktest.SessionInfo, error) {
	id, err := f.session()
	if err != nil {
		return zktest.SessionInfo{}, err
	}
	all := c.srv.Sessions()
	if i := slices.IndexFunc(all, func(s zktest.SessionInfo) bool { return s.ID == id }); i >= 0 {
		return all[i], nil
	}
	ids := []string{}
	for _, s := range all {
		ids = append(ids, hex(s.ID))
	}
	return zktest.SessionInfo{}, refused(http.StatusNotFound, `"session" is %s, which does not live; those that live: [%s]`, hex(id), strings.Join(ids, ", "))
}

// of is the answer about one session.
func of(id int64) any { return map[string]string{"session": hex(id)} }

func (c *Control) expire(f fields) (any, error) {
	s, err := c.living(f)
	if err != nil {
		return nil, err
	}
	c.srv.Expire(s.ID) // if it ended in between, that is what was asked for
	return of(s.ID), nil
}

func (c *Control) disconnect(f fields) (any, error) {
	s, err := c.living(f)
	if err != nil {
		return nil, err
	}
	if !c.srv.Disconnect(s.ID) {
		return nil, refused(http.StatusConflict, `"session" is %s, which has no connection now`, hex(s.ID))
	}
	return of(s.ID), nil
}

func (c *Control) partition(f fields) (any, error) {
	s, err := c.living(f)
	if err != nil {
		return nil, err
	}
	c.add(&fault{name: "partition of " + hex(s.ID), session: s.ID, end: c.srv.Partition(s.ID)})
	return of(s.ID), nil
}

// heal ends the partition of one session, or all faults. A session may have expired in its partition.
func (c *Control) heal(f fields) (any, error) {
	meant := func(*fault) bool { return true }
	if f.has("session") {
		id, err := f.session()
		if err != nil {
			return nil, err
		}
		meant = func(x *fault) bool { return x.session == id && id != 0 }
	}
	healed := c.take(meant)
	if len(healed) == 0 && f.has("session") {
		return nil, refused(http.StatusNotFound, `"session" is %s, which is not partitioned; the faults now: [%s]`, f["session"], strings.Join(c.active(), ", "))
	}
	var failed error
	texts := []string{}
	for _, x := range healed {
		texts = append(texts, x.String())
		failed = errors.Join(failed, reopen(x.end))
	}
	return map[string]any{"healed": texts}, failed
}

func (c *Control) loseReply(f fields) (any, error) {
	return c.intercept("lose-reply", "", f, (*zktest.Rule).LoseReply)
}

func (c *Control) loseRequest(f fields) (any, error) {
	return c.intercept("lose-request", "", f, (*zktest.Rule).LoseRequest)
}

func (c *Control) delay(f fields) (any, error) {
	by, err := f.duration("by")
	if err != nil {
		return nil, err
	}
	return c.intercept("delay", " by "+by.String(), f, func(r *zktest.Rule) *zktest.Rule { return r.Delay(by) })
}

// intercept makes a rule of a request's fields.
func (c *Control) intercept(name, how string, f fields, verdict func(*zktest.Rule) *zktest.Rule) (any, error) {
	op, err := f.op()
	if err != nil {
		return nil, err
	}
	path, err := f.text("path", `a pattern such as "/locks/*", "/locks/**" or "**"`)
	if err != nil {
		return nil, err
	}
	nth, err := f.count("nth", 1)
	if err != nil {
		return nil, err
	}
	x := &fault{name: fmt.Sprintf("%s %v %s", name, op, path), once: nth > 0}
	rule := zktest.On(op, path).Nth(nth)
	if x.once {
		x.name += fmt.Sprintf(" nth %d", nth)
	}
	if f.has("session") {
		s, err := c.living(f)
		if err != nil {
			return nil, err
		}
		rule.Of(s.ID)
		x.name += " of " + hex(s.ID)
	}
	x.name += how
	if err := attempt(func() { x.rule = c.srv.Intercept(verdict(rule)) }); err != nil {
		return nil, bad(`"path" is %s: %v`, shown(path), err)
	}
	x.end = x.rule.Remove
	c.add(x)
	return map[string]string{"fault": x.name}, nil
}

// refuse ends by itself if it is told for how long.
func (c *Control) refuse(f fields) (any, error) {
	x := &fault{name: "refuse"}
	if !f.has("for") {
		x.end = c.srv.Refuse()
		c.add(x)
		return map[string]string{"fault": x.name}, nil
	}
	d, err := f.duration("for")
	if err != nil {
		return nil, err
	}
	x.name += " for " + d.String()
	x.end = c.srv.Refuse()
	c.add(x)
	time.AfterFunc(d, func() {
		if len(c.take(func(y *fault) bool { return x == y })) == 0 {
			return // healed
		}
		if err := reopen(x.end); err != nil {
			c.log.Error("the server goes on refusing connections", "error", err)
		}
	})
	return map[string]string{"fault": x.name}, nil
}

func (c *Control) restart(f fields) (any, error) {
	empty := false
	if f.has("empty") {
		if err := f.decode("empty", "true or false", &empty); err != nil {
			return nil, err
		}
	}
	again := c.srv.Restart
	if empty {
		again = c.srv.RestartEmpty
	}
	return map[string]bool{"empty": empty}, reopen(again)
}

func (c *Control) advance(f fields) (any, error) {
	if !c.manual {
		return nil, refused(http.StatusConflict, "the server's clock runs by itself: start menagerie serve with --manual-clock")
	}
	by, err := f.duration("by")
	if err != nil {
		return nil, err
	}
	c.srv.Advance(by)
	return map[string]time.Time{"now": c.srv.Now()}, nil
}
