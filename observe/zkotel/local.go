package zkotel

import (
	"slices"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"go.opentelemetry.io/otel/trace"
)

// local has the locks that goroutines of this process hold or wait for, by path. So a waiter is linked to a holder in the
// same process without anything in a node.
type local struct {
	mu    sync.Mutex
	locks map[string]*lock
}

// lock is in the map while a goroutine holds it or waits for it.
type lock struct {
	waiting int
	holds   []hold // oldest first
	last    hold   // the newest of those that ended while a goroutine waited
	ended   time.Time
}

type hold struct {
	token zksync.Token
	span  trace.SpanContext
}

// mostLinks bounds the links of a waiter that gave up: a semaphore may have thousands of holders.
const mostLinks = 8

// change calls f with the lock at path, and forgets the lock if it is unused then.
func (l *local) change(path string, f func(*lock)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.locks[path]
	if k == nil {
		k = new(lock)
		l.locks[path] = k
	}
	f(k)
	if k.waiting == 0 && len(k.holds) == 0 {
		delete(l.locks, path)
	}
}

// waits notes a waiter. One call of gaveUp or granted follows.
func (l *local) waits(path string) {
	l.change(path, func(k *lock) { k.waiting++ })
}

// gaveUp returns the holds that a waiter has waited for in vain.
func (l *local) gaveUp(path string) (ahead []trace.SpanContext) {
	l.change(path, func(k *lock) {
		k.waiting--
		for _, h := range k.holds[max(0, len(k.holds)-mostLinks):] {
			ahead = append(ahead, h.span)
		}
	})
	return ahead
}

// granted returns the hold that ended last since began, which is when the wait began. It is invalid if there is none.
func (l *local) granted(path string, began time.Time) (before trace.SpanContext) {
	l.change(path, func(k *lock) {
		k.waiting--
		if !k.ended.Before(began) {
			before = k.last.span
		}
	})
	return before
}

// holds notes a hold. One call of left follows.
func (l *local) holds(path string, h hold) {
	l.change(path, func(k *lock) { k.holds = append(k.holds, h) })
}

// left notes the end of a hold.
func (l *local) left(path string, token zksync.Token) {
	l.change(path, func(k *lock) {
		i := slices.IndexFunc(k.holds, func(h hold) bool { return h.token == token })
		if i < 0 {
			return
		}
		k.last, k.ended = k.holds[i], time.Now()
		k.holds = slices.Delete(k.holds, i, i+1)
	})
}
