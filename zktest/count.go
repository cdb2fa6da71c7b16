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

// WithHeartbeat sets the path whose sync counts as a heartbeat: by default "/", with which sessions of this
// module prove that they live; "" for none.
func WithHeartbeat(path string) Option {
	return func(o *options) { o.cfg.Heartbeat = path }
}
