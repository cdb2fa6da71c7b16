package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// ledger records what the callers were told of each element, and tells whether that can be true.
type ledger struct {
	mu      sync.Mutex
	put     map[int]bool // the Put succeeded
	refused map[int]bool // it failed, for certain
	gone    map[int]int  // how often the element was taken or acknowledged
	maybe   map[int]bool // an acknowledgement has an unknown outcome
	lost    int          // how many Takes have one
	wrong   []string
	last    map[string]map[int]int // by consumer and producer: the last element that was delivered for the first time
}

func newLedger() *ledger {
	return &ledger{put: map[int]bool{}, refused: map[int]bool{}, gone: map[int]int{}, maybe: map[int]bool{}, last: map[string]map[int]int{}}
}

func (l *ledger) with(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// healthy notes an error of a call whose context lives. Only the end of a session leaves an outcome unknown.
func (l *ledger) healthy(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !zksync.Ambiguous(err) && !errors.Is(err, zksync.ErrLost) {
		l.with(func() { l.wrong = append(l.wrong, err.Error()) })
	}
}

func (l *ledger) puts(v int, err error) {
	l.with(func() {
		switch {
		case err == nil:
			l.put[v] = true
		case !zksync.Ambiguous(err):
			l.refused[v] = true
		}
	})
}

// delivers checks that a consumer gets the elements of each producer in order, except those that come again.
func (l *ledger) delivers(consumer string, v, attempt int) {
	l.with(func() {
		if l.gone[v] > 0 {
			l.wrong = append(l.wrong, fmt.Sprintf("%d was delivered after it had been acknowledged", v))
		}
		if l.last[consumer] == nil {
			l.last[consumer] = map[int]int{}
		}
		producer := v / 1000
		if attempt == 1 && v%1000 < l.last[consumer][producer] {
			l.wrong = append(l.wrong, fmt.Sprintf("%s got %d out of order", consumer, v))
		}
		if attempt == 1 {
			l.last[consumer][producer] = v % 1000
		}
	})
}

// ends is told of an Ack.
func (l *ledger) ends(v int, err error) {
	l.with(func() {
		switch {
		case err == nil:
			l.gone[v]++
		case zksync.Ambiguous(err):
			l.maybe[v] = true
		}
	})
}

func (l *ledger) takes(v int, err error) {
	l.with(func() {
		switch {
		case err == nil:
			l.gone[v]++
		case zksync.Ambiguous(err):
			l.lost++
		}
	})
}

// check compares with what is left in the queue.
func (l *ledger) check(t *testing.T, left []int, story string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.wrong, story)
	there := map[int]int{}
	for _, v := range left {
		there[v]++
		require.False(t, l.refused[v], "%s: %d is there, and its Put has failed", story, v)
	}
	for v, n := range l.gone {
		require.LessOrEqual(t, n, 1, "%s: %d was consumed %d times", story, v, n)
		require.False(t, l.refused[v], "%s: %d was consumed, and its Put has failed", story, v)
		require.Zero(t, there[v], "%s: %d was consumed, and is still there", story, v)
	}
	missing := 0
	for v := range l.put {
		if l.gone[v] == 0 && there[v] == 0 && !l.maybe[v] {
			missing++
		}
		require.LessOrEqual(t, there[v], 1, "%s: %d is there twice", story, v)
	}
	require.LessOrEqual(t, missing, l.lost, "%s: elements were lost", story)
}

// produce puts n elements.
func (l *ledger) produce(ctx context.Context, q *zkqueue.Queue[int], producer, n int) {
	for i := 1; i <= n; i++ {
		err := q.Put(ctx, 1000*producer+i)
		l.puts(1000*producer+i, err)
		l.healthy(ctx, err)
		if err != nil && ctx.Err() != nil {
			return
		}
	}
}

// consume receives until ctx ends. It gives the first delivery back, and works on the others for a while.
func (l *ledger) consume(ctx context.Context, q *zkqueue.Queue[int], name string, work time.Duration) {
	for n := 0; ctx.Err() == nil; n++ {
		d, err := q.Receive(ctx)
		l.healthy(ctx, err)
		if err != nil {
			continue
		}
		l.delivers(name, d.Value, d.Attempt)
		if work > 0 {
			<-time.After(work)
		}
		if n == 0 {
			_ = d.Nack(context.Background())
			continue
		}
		err = d.Ack(ctx)
		l.ends(d.Value, err)
		if err != nil && !zksync.Ambiguous(err) && ctx.Err() != nil {
			_ = d.Nack(context.Background()) // Ack has done nothing
		}
		l.healthy(ctx, err)
	}
}

// grab takes until ctx ends.
func (l *ledger) grab(ctx context.Context, q *zkqueue.Queue[int]) {
	for ctx.Err() == nil {
		v, err := q.Take(ctx)
		l.takes(v, err)
		l.healthy(ctx, err)
	}
}

// struck plays a scenario while a blow falls on the nth request, and reports whether there were so many.
func struckQueue(v *proving.Env, b proving.Blow, nth, capacity int) (struck bool) {
	t := v.T
	t.Helper()
	story := fmt.Sprintf("%s at request %d, capacity %d", b.Name, nth, capacity)
	var opts []zksync.Option
	if capacity > 0 {
		opts = append(opts, zkqueue.WithCapacity(capacity))
	}
	all, stop := context.WithCancel(context.Background())
	defer stop()
	qs := make([]*zkqueue.Queue[int], 4)
	ctxs := make([]context.Context, len(qs))
	cancels := make(map[int64]context.CancelFunc)
	for i := range qs {
		s := v.Session()
		qs[i] = zkqueue.New[int](s, path, opts...)
		ctxs[i], cancels[s.ID()] = context.WithCancel(all)
		defer cancels[s.ID()]()
		require.Zero(t, length(t, qs[i]))
	}
	v.Quiet()
	hit := v.Meets(b, nth, func(id int64) {
		if cancel := cancels[id]; cancel != nil {
			cancel()
		}
	})
	l := newLedger()
	var wg sync.WaitGroup
	wg.Go(func() { l.produce(ctxs[0], qs[0], 1, 3) })
	wg.Go(func() { l.produce(ctxs[1], qs[1], 2, 3) })
	wg.Go(func() { l.consume(ctxs[2], qs[2], "the consumer", 10*time.Millisecond) })
	wg.Go(func() { l.grab(ctxs[3], qs[3]) })
	v.PassAWhile()
	v.PassAWhile()
	stop()
	wg.Wait()
	v.PassAWhile()
	struck = hit()
	left := []int{}
	q := zkqueue.New[int](v.Session(), path, opts...)
	for e, err := range q.All(t.Context()) {
		require.NoError(t, err, story)
		left = append(left, e)
	}
	l.check(t, left, story)
	if !b.Deadly && !b.Cancels {
		require.Zero(t, l.lost+len(l.maybe), "%s: an outcome is unknown", story)
	}
	if !b.Cancels {
		require.Empty(t, left, "%s: consumers have stalled", story)
	}
	for _, dir := range []string{"claims", "takers", "putters"} {
		require.Empty(t, v.Server.Children(path+"/zkqueue/"+dir), "%s: %s", story, dir)
	}
	drained, err := q.Drain(t.Context(), 100)
	require.NoError(t, err, story)
	require.ElementsMatch(t, left, drained, story)
	return struck
}

func TestAcceptance135And141EveryFaultLeavesTheQueueSound(t *testing.T) {
	for _, capacity := range []int{0, 2} {
		for _, b := range proving.Blows() {
			t.Run(fmt.Sprintf("%s/capacity=%d", b.Name, capacity), func(t *testing.T) {
				b.EveryRequest(t, 40, func(v *proving.Env, nth int) bool { return struckQueue(v, b, nth, capacity) })
			})
		}
	}
}
