package queue_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// touchy is a value whose decoder panics once, as a user's may. Its caller recovers, as net/http does, and the session lives on.
type touchy int

var explode atomic.Bool

func (v *touchy) UnmarshalJSON(b []byte) error {
	if explode.Swap(false) {
		panic("a bug in the decoder")
	}
	return json.Unmarshal(b, (*int)(v))
}

func TestAPanicOfADecoderGivesTheTurnInLineBack(t *testing.T) {
	for how, get := range map[string]func(ctx context.Context, q *zkqueue.Queue[touchy]) error{
		"Take":    func(ctx context.Context, q *zkqueue.Queue[touchy]) error { _, err := q.Take(ctx); return err },
		"Receive": func(ctx context.Context, q *zkqueue.Queue[touchy]) error { _, err := q.Receive(ctx); return err },
	} {
		t.Run(how, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s := v.Session()
				a, b := zkqueue.New[touchy](s, path), zkqueue.New[touchy](v.Session(), path)
				recovered := make(chan any)
				go func() {
					defer func() { recovered <- recover() }()
					_ = get(t.Context(), a)
				}()
				v.Quiet()
				explode.Store(true)
				require.NoError(t, b.Put(t.Context(), 1))
				require.NotNil(t, <-recovered)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				require.NoError(t, get(ctx, b), "an element is there, and another process asks for it")
				require.Equal(t, zksync.Connected, s.State())
				require.Empty(t, v.Children(path+"/zkqueue/takers"))
			})
		})
	}
}

// The object does not take the element for one that another of its goroutines is after.
func TestAnElementWhoseDecoderHasPanickedComesNext(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		q := zkqueue.New[touchy](v.Session(), path)
		for n := range touchy(3) {
			require.NoError(t, q.Put(t.Context(), n))
		}
		explode.Store(true)
		require.Panics(t, func() { _, _ = q.Receive(t.Context()) })
		for n := range touchy(3) {
			require.Equal(t, n, receive(t, q).Value)
		}
	})
}
