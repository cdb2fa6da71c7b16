package zktest

// tally counts requests by their kind.
type tally map[Op]int

func (t tally) of(op Op) int {
	if op != Any {
		return t[op]
	}
	sum := 0
	for o, n := range t {
		if o.asked() {
			sum += n
		}
	}
	return sum
}

// counts are the requests that have arrived.
type counts struct {
	all       tally
	bySession map[int64]tally
}

func newCounts() counts { return counts{all: tally{}, bySession: map[int64]tally{}} }

func (c *counts) add(q *Request) {
	op := q.Op
	if q.heartbeat {
		op = Ping
	}
	c.all[op]++
	of := c.bySession[q.Session]
	if of == nil {
		of = tally{}
		c.bySession[q.Session] = of
	}
	of[op]++
}

// WithHeartbeat sets the path whose sync counts as a heartbeat, as a ping does: it is none of [Server.Requests], rules for [Any] leave it
// alone, and it overtakes what they hold. The default is "/", which sessions of this module sync to let the leader know that they live;
// with "" every sync is a request like others.
func WithHeartbeat(path string) Option {
	return func(o *options) { o.cfg.Heartbeat = path }
}
