package errs

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// trail is a context that keeps why the newest attempt of the call failed whose context it is. Calls try again
// until their contexts end, and then the caller must learn of more than the end of the context.
type trail struct {
	context.Context

	mu    sync.Mutex
	op    int32
	err   error
	since time.Time // when the first attempt in a row failed
	told  bool

	where func(limit time.Duration) string // see Waits; nil if it waits for nothing that is known
}

type trailKey struct{}

func (t *trail) Value(key any) any {
	if key == (trailKey{}) {
		return t
	}
	return t.Context.Value(key)
}

func trailOf(ctx context.Context) *trail {
	t, _ := ctx.Value(trailKey{}).(*trail)
	return t
}

// WithTrail returns a context for the attempts of a call, for [Failed], [Worked] and [LastOf]. It
// is ctx, if that has a trail: then these are attempts of the same call, or of one who waits for them.
func WithTrail(ctx context.Context) context.Context {
	if trailOf(ctx) != nil {
		return ctx
	}
	return &trail{Context: ctx}
}

// patience is how long attempts may fail before somebody should know.
const patience = time.Second

// Failed notes why the newest attempt failed; op is a number for the kind of its request.
// It reports true once, when the attempts have failed for a second.
func Failed(ctx context.Context, op int32, err error) (long bool) {
	t := trailOf(ctx)
	if t == nil || err == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.since = time.Now()
	}
	t.op, t.err = op, err
	long = !t.told && time.Since(t.since) >= patience
	t.told = t.told || long
	return long
}

// Worked notes that the servers have answered a request of the kind op. What failed before may have been of another.
func Worked(ctx context.Context, op int32) {
	if t := trailOf(ctx); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.op == op {
			t.err, t.told = nil, false
		}
	}
}

// LastOf is why the newest attempt failed; nil if it did not, or if ctx has no trail.
func LastOf(ctx context.Context) error {
	t := trailOf(ctx)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Waits notes what the call waits for: where says it to people, and may ask the servers for as long as limit. nil takes it back.
func Waits(ctx context.Context, where func(limit time.Duration) string) {
	if t := trailOf(ctx); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.where = where
	}
}

// Where is what the call whose context it is waits for: "2nd in line, held by web-3 pid 4711 for 12s"; "" if that is not known. It
// blocks for limit at most.
func Where(ctx context.Context, limit time.Duration) string {
	t := trailOf(ctx)
	if t == nil {
		return ""
	}
	t.mu.Lock()
	where := t.where
	t.mu.Unlock()
	if where == nil {
		return ""
	}
	return where(limit)
}

// At adds to err, with which a wait ends, what it waited for. where may be "".
func At(err error, where string) error {
	if where == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, where)
}

// After adds to err, with which a call ends, why its newest attempt failed. last may be nil.
// The error underneath last is not found in the result: it did not end the call.
func After(err, last error) error {
	if last == nil {
		return err
	}
	return fmt.Errorf("%w; %v", err, last)
}
