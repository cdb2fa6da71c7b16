package zkrate

import (
	"container/list"
	"math"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// bucket is what this process has: a token bucket with the rate and the size of its share. Tokens never appear in it except by its
// rate, and out of the record ([bucket.become]); so what all processes have together obeys the limit.
type bucket struct {
	mu    sync.Mutex
	epoch *zkconn.Epoch // the session whose lease the share is; nil without a share: then nothing is allowed
	inf   bool          // everything is allowed
	rate  float64       // tokens a second
	size  float64
	level float64 // at the time at
	at    time.Time

	waiting list.List   // of *waiter: first come, first served
	timer   *time.Timer // for the first of them

	// What the loop learns of the demand.
	hungry func()    // is called, under mu, when the process has become short
	short  time.Time // the last time that a call found too few tokens; zero once that is too long ago
	asked  time.Time // the last call
	tokens float64   // how many were asked for, since the loop has looked
	need   int       // the most that such a call wanted, while short
	served bool      // a call had its tokens, since the loop has looked
}

// waiter is one call of Wait.
type waiter struct {
	n    int
	done chan struct{} // closed once it has its tokens, or has failed
	err  error
}

// advance adds the tokens up to now. mu is held.
func (b *bucket) advance(now time.Time) {
	if d := now.Sub(b.at); d > 0 {
		b.level = min(b.size, b.level+b.rate*d.Seconds())
		b.at = now
	}
}

// live reports whether the share counts at this instant. It asks the clock of the lease, so a process that was paused finds out before
// any timer does. mu is held.
func (b *bucket) live(now time.Time) bool { return b.epoch != nil && b.epoch.ValidAt(now) }

// take takes n tokens if it can, at once. live is false without a share in a session.
func (b *bucket) take(n int) (ok, live bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.ask(n, now)
	if !b.live(now) {
		b.lack(n, now)
		return false, false
	}
	if b.waiting.Len() == 0 && b.spend(n, now) {
		return true, true
	}
	b.lack(n, now)
	return false, true
}

// spend takes n tokens if there are that many. mu is held.
func (b *bucket) spend(n int, now time.Time) bool {
	if b.inf {
		return true
	}
	if b.advance(now); b.level < float64(n) {
		return false
	}
	b.level -= float64(n)
	b.served = true
	return true
}

// ask notes a call. mu is held.
func (b *bucket) ask(n int, now time.Time) {
	b.asked = now
	b.tokens += float64(n)
}

// lack notes that a call found too few tokens. mu is held.
func (b *bucket) lack(n int, now time.Time) {
	first := b.short.IsZero() || n > b.need
	b.short, b.need = now, max(n, b.need, 1)
	if first && b.hungry != nil {
		b.hungry()
	}
}

// wait queues for n tokens.
func (b *bucket) wait(n int) *list.Element {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &waiter{n: n, done: make(chan struct{})}
	e := b.waiting.PushBack(w)
	b.ask(n, time.Now())
	b.grant()
	return e
}

// join waits until there is a share, or none is to come; at most for so long.
func (b *bucket) join(most time.Duration) {
	b.mu.Lock()
	w := &waiter{done: make(chan struct{})}
	e := b.waiting.PushFront(w)
	b.grant()
	b.mu.Unlock()
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-w.done:
	case <-t.C:
	}
	b.leave(e)
}

// leave ends the wait of a call, and reports whether it had its tokens already.
func (b *bucket) leave(e *list.Element) (granted bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := e.Value.(*waiter)
	select {
	case <-w.done:
		return w.err == nil
	default:
	}
	b.waiting.Remove(e)
	b.grant()
	return false
}

// grant gives the first waiters their tokens, and sets the timer for the next one. mu is held.
func (b *bucket) grant() {
	if b.timer != nil {
		b.timer.Stop()
	}
	for e := b.waiting.Front(); e != nil; e = b.waiting.Front() {
		w, now := e.Value.(*waiter), time.Now()
		if b.epoch == nil || w.n > 0 && !b.live(now) {
			b.lack(w.n, now)
			return // the next share begins here again
		}
		if !b.spend(w.n, now) {
			b.lack(w.n, now)
			b.later(float64(w.n) - b.level)
			return
		}
		b.waiting.Remove(e)
		close(w.done)
	}
}

// later sets the timer to the time when so many more tokens are there. mu is held.
func (b *bucket) later(tokens float64) {
	if b.rate <= 0 || b.level+tokens > b.size {
		return
	}
	d := math.Ceil(tokens/b.rate*float64(time.Second)) + 1 // never too early
	if d > math.MaxInt64/2 {
		return
	}
	b.timer = time.AfterFunc(time.Duration(d), func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.grant()
	})
}

// fail ends all waits with an error.
func (b *bucket) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := b.waiting.Front(); e != nil; e = b.waiting.Front() {
		w := b.waiting.Remove(e).(*waiter)
		w.err = err
		close(w.done)
	}
}

// begin makes the bucket that of a session, without a limit or with a first share: see become. hungry must not block.
func (b *bucket) begin(e *zkconn.Epoch, inf bool, hungry func(), rate float64, size, got int64) {
	b.mu.Lock()
	b.epoch, b.inf, b.hungry = e, inf, hungry
	b.mu.Unlock()
	b.become(rate, size, got)
}

// end takes everything out of the bucket: the share does not count any more.
func (b *bucket) end(e *zkconn.Epoch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch == e {
		b.epoch, b.hungry = nil, nil
		b.rate, b.size, b.level = 0, 0, 0
	}
}

// shrink lowers the bucket, before the record says so, and takes out the tokens that go with the room: they are returned, in whole
// thousandths. A rate or a size that is not lower is left alone.
func (b *bucket) shrink(rate float64, size int64) (given int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(time.Now())
	b.rate = min(b.rate, rate)
	if to := float64(size) / token; to < b.size {
		given = int64(b.level * (1 - to/b.size) * token)
		if to == 0 {
			given = int64(b.level * token)
		}
		b.level = min(b.level-float64(given)/token, to)
		b.size = to
	}
	b.grant()
	return given
}

// become gives the bucket this rate and size, and these tokens, in thousandths: those that the record has given to the process, or
// its own again.
func (b *bucket) become(rate float64, size, got int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.epoch == nil {
		return // the session has ended meanwhile
	}
	b.advance(time.Now())
	b.rate, b.size = rate, float64(size)/token
	b.level = max(0, min(b.level+float64(got)/token, b.size))
	b.grant()
}

// empty takes all tokens out, and returns them in whole thousandths: the share is given up.
func (b *bucket) empty() (given int64) { return b.shrink(0, 0) }

// report is what the loop learns at a look.
type report struct {
	short, idle, full, served bool
	need                      int
	tokens                    float64 // asked for since the last tick
}

// glance reports the demand. What is older than two periods does not count as recent. A tick begins to count again.
func (b *bucket) glance(now time.Time, period time.Duration, tick bool) (r report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.advance(now); b.waiting.Len() > 0 {
		b.asked, b.short = now, now
	}
	if !b.short.IsZero() && now.Sub(b.short) > 2*period {
		b.short, b.need = time.Time{}, 0
	}
	r = report{!b.short.IsZero(), now.Sub(b.asked) > 2*period, b.level >= b.size || b.rate == 0, b.served, b.need, b.tokens}
	if b.served = false; tick {
		b.tokens = 0
	}
	return r
}

// unused is for how long there was no call.
func (b *bucket) unused(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting.Len() > 0 {
		return 0
	}
	return now.Sub(b.asked)
}
