package recipes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkonce"
)

// sortie is one run of a function, as the test saw it.
type sortie struct {
	began, ended time.Time
	token        string
	lost         bool
}

// logbook says what happened, and judges it.
type logbook struct {
	t  *testing.T
	mu sync.Mutex
	// all runs of each key; a run's value is its index
	runs map[string][]*sortie
}

// fly is a function that takes a while, and tells which run of its key it is.
func (b *logbook) fly(key string, takes time.Duration) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		r := &sortie{began: time.Now(), token: zkonce.Lease(ctx).Token().String()}
		b.mu.Lock()
		n := len(b.runs[key])
		b.runs[key] = append(b.runs[key], r)
		for _, earlier := range b.runs[key][:n] {
			require.Less(b.t, earlier.token, r.token)
			require.False(b.t, earlier.ended.IsZero(), "two ran %s at once", key)
		}
		b.mu.Unlock()
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		r.ended = time.Now()
		r.lost = ctx.Err() != nil
		if r.lost {
			return 0, ctx.Err()
		}
		return n, nil
	}
}

// got judges a result: its run had not ended when the call began.
func (b *logbook) got(key string, called time.Time, n int, shared, ours bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[key][n]
	require.False(b.t, r.lost, "%s: the result of a run that was given up", key)
	// What is between the end of the function and the writing of its result takes no time here.
	require.False(b.t, r.ended.Before(called), "%s: run %d ended at %v, the call began at %v", key, n, r.ended, called)
	require.True(b.t, ours || shared, "%s: not shared, and yet it ran elsewhere", key)
}

// Twelve callers of four sessions on two keys, some of whom give up, while connections fail.
func TestAFlightGivesNobodyAResultOfBeforeHeAsked(t *testing.T) {
	for seed := range uint64(4) {
		inProcess(t, func(t *testing.T, v *env) {
			b := &logbook{t: t, runs: make(map[string][]*sortie)}
			chance := rand.New(rand.NewPCG(seed, 1))
			var all sync.WaitGroup
			var ids []int64
			ctx, stop := context.WithCancel(context.Background())
			for range 4 {
				s := v.session()
				ids = append(ids, s.ID())
				f := zkonce.NewFlight[int](s, flightPath)
				for range 3 {
					own := rand.New(rand.NewPCG(chance.Uint64(), 2))
					all.Go(func() { b.caller(f, own) })
				}
			}
			go func() {
				for ctx.Err() == nil {
					time.Sleep(time.Duration(chance.IntN(4000)) * time.Millisecond)
					v.srv.Disconnect(ids[chance.IntN(len(ids))])
				}
			}()
			all.Wait()
			stop()
			v.later()
			ran, lost := 0, 0
			for key, runs := range b.runs {
				require.Empty(t, v.srv.Children(flightPath+"/"+key+"/0/lock"))
				for _, r := range runs {
					ran++
					if r.lost {
						lost++
					}
				}
			}
			require.Less(t, ran, 12*60/2, "nothing was shared")
			require.Greater(t, ran-lost, 60)
		})
	}
}

// caller asks sixty times.
func (b *logbook) caller(f *zkonce.Flight[int], chance *rand.Rand) {
	for range 60 {
		time.Sleep(time.Duration(chance.IntN(300)) * time.Millisecond)
		key := fmt.Sprint("k", chance.IntN(2))
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		if chance.IntN(5) == 0 {
			cancel()
			ctx, cancel = context.WithTimeout(context.Background(), time.Duration(chance.IntN(200))*time.Millisecond)
		}
		called := time.Now()
		ours := false
		takes := time.Duration(chance.IntN(200)) * time.Millisecond
		n, err, shared := f.Do(ctx, key, func(ctx context.Context) (int, error) {
			ours = true
			return b.fly(key, takes)(ctx)
		})
		switch {
		case err == nil:
			b.got(key, called, n, shared, ours)
		case ctx.Err() == nil:
			require.NoError(b.t, err)
		}
		cancel()
	}
}
