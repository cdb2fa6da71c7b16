package zkotel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
	"go.opentelemetry.io/otel/trace"
)

// scope is the context of an acquisition, and then of its hold: the span in it is the acquisition's until the grant, and the
// hold's from then on. Its end and all other values are the caller's.
type scope struct {
	context.Context
	of      *tracer
	began   time.Time
	acquire trace.Span
	current atomic.Pointer[context.Context] // has the span

	mu    sync.Mutex
	hold  trace.Span   // nil unless held
	token zksync.Token // of hold
}

// key finds the scope of a tracer in a context, which may have scopes of several tracers.
type key struct{ of *tracer }

func (s *scope) Value(k any) any {
	if k == (key{s.of}) {
		return s
	}
	return (*s.current.Load()).Value(k)
}

// scopeOf is nil for a context that is not from AcquireStart.
func (t *tracer) scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(key{t}).(*scope)
	return s
}

// grant starts the span of the hold with start.
func (s *scope) grant(token zksync.Token, start func(context.Context) (context.Context, trace.Span)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, hold := start(*s.current.Load())
	s.hold, s.token = hold, token
	s.current.Store(&ctx)
}

// end returns the span of the hold with this token, once; nil if there is none.
func (s *scope) end(token zksync.Token) (hold trace.Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		hold, s.hold = s.hold, nil
	}
	return hold
}
