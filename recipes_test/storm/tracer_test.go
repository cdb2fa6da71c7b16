package storm_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-menagerie/menagerie/zksync"
)

// tracer has all parts, and notes what has begun and not ended: acquisitions, and runs of items.
type tracer struct {
	w *world

	mu    sync.Mutex
	open  map[any]string
	total int
}

type spanKey struct{}

// wait is an acquisition.
type wait struct{ path string }

func newTracer(w *world) *tracer { return &tracer{w: w, open: map[any]string{}} }

func (t *tracer) begins(what any, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, twice := t.open[what]
	t.w.must(!twice, "traced twice: %s", text)
	t.open[what] = text
	t.total++
}

func (t *tracer) ends(what any, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, begun := t.open[what]
	t.w.must(begun, "traced an end without a beginning: %s", text)
	delete(t.open, what)
}

// closed is called when nothing runs any more.
func (t *tracer) closed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, text := range t.open {
		t.w.must(false, "no end was traced: %s", text)
	}
}

func (t *tracer) AcquireStart(ctx context.Context, d zksync.AcquireStartData) context.Context {
	s := &wait{d.Path}
	t.begins(s, fmt.Sprintf("%s %s", d.Kind, d.Path))
	return context.WithValue(ctx, spanKey{}, s)
}

func (t *tracer) AcquireEnd(ctx context.Context, d zksync.AcquireEndData) {
	s, _ := ctx.Value(spanKey{}).(*wait)
	t.ends(s, d.Path)
	t.w.must(s.path == d.Path && (d.Err == nil) == (d.Node != ""), "traced %+v of %s", d, s.path)
}

func (t *tracer) Wait(ctx context.Context, d zksync.WaitData) {
	s, _ := ctx.Value(spanKey{}).(*wait)
	t.w.must(s.path == d.Path && d.Node != "" && d.Position >= 0, "traced %+v of %s", d, s.path)
}

func (t *tracer) Release(_ context.Context, d zksync.ReleaseData) {
	t.w.must(d.Node != "" && !d.Token.IsZero(), "traced %+v", d)
}

func (t *tracer) Lost(_ context.Context, d zksync.LossData) {
	t.w.must(d.Reason != "" && d.Err != nil, "traced %+v", d)
}

func (t *tracer) StateChange(d zksync.StateChangeData) {
	t.w.must(d.From != d.To || d.To == zksync.Lost, "traced %+v", d)
}

func (t *tracer) Request(d zksync.RequestData) {
	t.w.must(d.Sent > 0 && (d.Received > 0 || d.Err != nil) && (d.Code == 0 || d.Err != nil), "traced %+v", d)
}

func (t *tracer) Propagate(context.Context) string {
	return "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
}

func (t *tracer) Delivery(_ context.Context, d zksync.DeliveryData) {
	t.w.must((d.Event == "put") == (d.Attempt == 0), "traced %+v", d)
}

func (t *tracer) Tick(_ context.Context, d zksync.TickData) {
	t.w.must((d.Outcome == "missed") == d.Token.IsZero(), "traced %+v", d)
}

// turn is a run of an item.
type turn struct{ path, member, item string }

func (t *tracer) Assign(_ context.Context, d zksync.AssignData) {
	r := turn{d.Path, d.Member, d.Item}
	if d.Event == "gained" {
		t.begins(r, fmt.Sprint(r))
	} else {
		t.ends(r, fmt.Sprint(r))
	}
}
