package zkrate

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Limiter limits how often something happens in all processes together.
type Limiter struct {
	at     *session.Access
	limit  rate.Limit
	burst  int
	terms  record.Terms[terms]
	bucket bucket

	mu      sync.Mutex
	running bool
	trail   context.Context // of the present run: why its requests failed
	seen    bool            // the record was there already: see first
	failed  error           // why the last run has ended; nil while there is one
	again   time.Time       // when the next run may begin
}

// terms are the data of the base node.
type terms struct {
	Limit rate.Limit `json:"limit"`
	Burst int        `json:"burst"`
	First int64      `json:"first"` // the tokens at the beginning, in thousandths
}

// New names a limiter: limit events a second, of which burst may come at once. [rate.Inf] allows everything while
// there is a session, 0 only the burst, once for all time. Its options are WithACL and WithName.
func New(s *zksync.Session, path string, limit rate.Limit, burst int, opts ...zksync.Option) *Limiter {
	at := session.NewAccess("zkrate", (*session.Session)(s), path, opts).Without(session.OfHolds...)
	switch {
	case math.IsNaN(float64(limit)) || limit < 0:
		at.Refuse(errs.Misuse("a limit of %v events a second; give 0 or more", float64(limit)))
	case burst < 0 || burst > maxBurst:
		at.Refuse(errs.Misuse("a burst of %d; give 0 to %d", burst, int64(maxBurst)))
	}
	if math.IsInf(float64(limit), 1) {
		limit = rate.Inf
	}
	l := &Limiter{at: at, limit: limit, burst: burst}
	base := strings.TrimSuffix(at.Full(path), "/") + "/" + layout.Rate
	l.terms = record.Terms[terms]{
		Base: base, ACL: at.ACL(), Type: layout.Rate, Keys: []string{"limit", "burst", "first"},
		First: l.first, Check: l.check,
	}
	return l
}

// first is the record at the beginning: with a full bucket. A record that this object knows of was removed externally. The one after
// it begins empty: else a removal would be another burst.
func (l *Limiter) first() (terms, []string) {
	t := terms{l.limit, l.burst, int64(l.burst) * token}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen {
		t.First = 0
	}
	return t, []string{l.shares(), l.processes()}
}

// check refuses another limit.
func (l *Limiter) check(t terms) error {
	if t.Limit != l.limit || t.Burst != l.burst {
		return errs.Misuse("the limit is %s there, and %s here; use the same everywhere", limitText(t.Limit, t.Burst), limitText(l.limit, l.burst))
	}
	return nil
}

func (l *Limiter) shares() string             { return l.terms.Base + "/shares" }
func (l *Limiter) processes() string          { return l.terms.Base + "/processes" }
func (l *Limiter) process(id string) string   { return l.processes() + "/" + id }
func (l *Limiter) rateOf(parts int64) float64 { return float64(l.limit) * (float64(parts) / wholeRate) }

// made is l, which New has made. For a zero or nil value it panics.
func (l *Limiter) made() *Limiter {
	if l == nil || l.at == nil {
		panic(errs.Unmade("zkrate", "a Limiter", "New"))
	}
	return l
}

// Allow is AllowN(1).
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN reports whether n events may happen now, and counts them if so. It answers from the share of this process.
// The first call, and the first after a long pause or in a new session, waits until the process has joined: at most a
// third of the session timeout, and not without a connection. It is false for n > burst, and after a misuse, which
// is logged.
func (l *Limiter) AllowN(n int) bool {
	switch {
	case l.made().at.Misuse() != nil || n < 0 || l.over(n):
		return false
	case n == 0:
		return true
	}
	if ok, live := l.bucket.take(n); live {
		return ok
	}
	err := l.run()
	e := l.at.Client().Current()
	if err != nil || e == nil || !e.Linked() {
		return false
	}
	l.bucket.join(e.Timeout() / 3)
	ok, _ := l.bucket.take(n)
	return ok
}

// over reports whether n events can never happen at once.
func (l *Limiter) over(n int) bool { return n > l.burst && l.limit != rate.Inf }

// Wait is WaitN(ctx, 1).
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN waits until n events may happen, and counts them. Calls of one Limiter are served in order. A share may grow, so it waits until
// ctx ends, even if its deadline is close. n > burst is ErrMisuse.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	return l.made().at.Named("wait", l.wait(ctx, n))
}

func (l *Limiter) wait(ctx context.Context, n int) error {
	switch {
	case l.at.Misuse() != nil:
		return l.at.Misuse()
	case n < 0:
		return errs.Misuse("a wait for %d events", n)
	case l.over(n):
		return errs.Misuse("a wait for %d events, and the burst is %d", n, l.burst)
	case ctx.Err() != nil:
		return errs.OfContext(ctx)
	case n == 0:
		return nil
	}
	turn := l.bucket.wait(n)
	w := turn.Value.(*waiter)
	if err := l.run(); err != nil && !l.bucket.leave(turn) {
		return err
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	if l.bucket.leave(turn) {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	return errs.After(errs.OfContext(ctx), l.lastFailure())
}

// run begins a run unless there is one. After a failure there is a pause.
func (l *Limiter) run() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.running:
		return nil
	case l.failed != nil && time.Now().Before(l.again):
		return l.failed
	case !l.at.Spawn(l.keep):
		return errs.ErrClosed
	}
	l.running, l.failed = true, nil
	return nil
}
