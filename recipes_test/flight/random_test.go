package flight_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zksync"
)

// A flight against what it is made of: the history of runs, calls and Forgets of each key, as the
// test sees it from outside, with everything at its instant of virtual time.

// flightStep is something that happens after a while.
type flightStep struct {
	after   time.Duration
	what    string // do, forget, disconnect, partition
	session int
	key     string
	takes   time.Duration // of the function, or of a partition
	patient time.Duration // how long the caller waits
	fails   bool          // the function returns an error
}

func drawFlightStep(t *rapid.T) flightStep {
	ms := func(label string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, label)) * time.Millisecond
	}
	s := flightStep{
		after:   ms("after", 120),
		what:    rapid.SampledFrom([]string{"do", "do", "do", "do", "do", "do", "do", "do", "forget", "disconnect", "partition"}).Draw(t, "what"),
		session: rapid.IntRange(0, 2).Draw(t, "session"),
		key:     rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
		takes:   ms("takes", 300),
		patient: time.Hour,
		fails:   rapid.IntRange(0, 9).Draw(t, "fails") == 0,
	}
	if rapid.IntRange(0, 4).Draw(t, "impatient") == 0 {
		s.patient = ms("patient", 200)
	}
	if s.what == "partition" {
		s.takes *= 100
	}
	return s
}

// sortie is one run of a function. Its value is its index.
type sortie struct {
	began, ended time.Time
	token        string
	lost, failed bool
	told         time.Time // when somebody first had its result
}

// oblivion is one Forget.
type oblivion struct{ called, returned time.Time }

// logbook is the history, and its judge.
type logbook struct {
	mu      sync.Mutex
	runs    map[string][]*sortie
	forgets map[string][]oblivion
	shared  int
	wrong   []string
}

// object is called with mu held.
func (b *logbook) object(bad bool, format string, args ...any) {
	if bad {
		b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
	}
}

// fly is the function of a step.
func (b *logbook) fly(ctx context.Context, s flightStep) (int, error) {
	r := &sortie{began: time.Now(), token: zksync.LeaseFrom(ctx).Token().String()}
	b.mu.Lock()
	n := len(b.runs[s.key])
	for i, earlier := range b.runs[s.key] {
		b.object(earlier.token >= r.token, "token of run %d of %s is not greater than that of run %d", n, s.key, i)
		b.object(earlier.ended.IsZero(), "runs %d and %d of %s at once", i, n, s.key)
	}
	b.runs[s.key] = append(b.runs[s.key], r)
	b.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.ended, r.lost, r.failed = time.Now(), ctx.Err() != nil, s.fails
	switch {
	case r.lost:
		return n, ctx.Err()
	case r.failed:
		return n, fmt.Errorf("run %d", n)
	}
	return n, nil
}

// judge looks at what a call that began at called got.
func (b *logbook) judge(s flightStep, called time.Time, n int, err error, shared, ours bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		// The function's own, or that its lease was lost, in this process or, as text, in another.
		return
	}
	r := b.runs[s.key][n]
	b.object(r.lost || r.failed, "run %d of %s had no result", n, s.key)
	// That is the end of the run as far as anybody can see: its result may have been on its
	// way for long.
	if r.told.IsZero() {
		r.told = time.Now()
	}
	b.object(r.told.Before(called), "run %d of %s had ended when it was asked for", n, s.key)
	b.object(!ours && !shared, "run %d of %s is not shared, and ran elsewhere", n, s.key)
	for _, f := range b.forgets[s.key] {
		b.object(!f.returned.IsZero() && f.returned.Before(called) && r.began.Before(f.called),
			"run %d of %s was forgotten before it was asked for", n, s.key)
	}
	if shared {
		b.shared++
	}
}

// take does one step.
func (b *logbook) take(v *proving.Env, s flightStep, f *zkflight.Flight[int], id int64) {
	switch s.what {
	case "do":
		ctx, cancel := context.WithTimeout(context.Background(), s.patient)
		defer cancel()
		called := time.Now()
		ours := make(chan struct{}, 1)
		n, err, shared := f.Do(ctx, s.key, func(ctx context.Context) (int, error) {
			ours <- struct{}{}
			return b.fly(ctx, s)
		})
		b.judge(s, called, n, err, shared, len(ours) > 0)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.object(time.Since(called) > s.patient+100*time.Millisecond, "Do overran its deadline: %v", time.Since(called))
	case "forget":
		b.mu.Lock()
		at := len(b.forgets[s.key])
		b.forgets[s.key] = append(b.forgets[s.key], oblivion{called: time.Now()})
		b.mu.Unlock()
		err := f.Forget(context.Background(), s.key)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.object(err != nil, "Forget: %v", err)
		b.forgets[s.key][at].returned = time.Now()
	case "disconnect":
		v.Server.Disconnect(id)
	case "partition":
		heal := v.Server.Partition(id)
		time.Sleep(s.takes)
		heal()
	}
}

func TestFlightsAtRandomAgreeWithTheirHistory(t *testing.T) {
	runs, shared := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawFlightStep), 20, 100).Draw(rt, "steps")
		b := &logbook{runs: make(map[string][]*sortie), forgets: make(map[string][]oblivion)}
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			var fs []*zkflight.Flight[int]
			var ids []int64
			for range 3 {
				s := v.Session()
				fs, ids = append(fs, zkflight.New[int](s, flightPath)), append(ids, s.ID())
			}
			var all sync.WaitGroup
			for _, s := range steps {
				time.Sleep(s.after)
				all.Go(func() { b.take(v, s, fs[s.session], ids[s.session]) })
			}
			all.Wait()
			v.Later()
			for _, key := range v.Server.Children(flightPath) {
				queue := v.Server.Children(flightPath + "/" + key + "/flight")
				b.object(len(queue) > 0, "left in the queue of %s: %v", key, queue)
			}
		})
		if len(b.wrong) > 0 {
			rt.Fatalf("%q", b.wrong)
		}
		runs += len(b.runs["a"]) + len(b.runs["b"])
		shared += b.shared
	})
	if !testing.Short() { // then they may be too few
		require.Positive(t, shared)
	}
	t.Logf("%d runs, %d results shared", runs, shared)
}
