package zkconn

import (
	"context"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Two goroutines may find at the same time that a connection has ended. While the first takes it out of use, the second
// must not try it again: its attempts would be spent on it, and the next one comes after a pause.
func TestAConnectionThatHasEndedIsNotTriedAgainWhileItIsTakenOutOfUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t)
		c := p.open(6 * time.Second)
		first := <-p.dials
		p.answerHello(first, 1, 6*time.Second)
		e, err := c.Epoch(t.Context())
		require.NoError(t, err)
		w := e.current()
		e.telling.Lock() // the first one waits for it
		go w.fail(io.EOF)
		for !w.ending() {
			runtime.Gosched()
		}
		w.fail(io.EOF) // the second one returns at once
		next := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { next <- e.Await(ctx) }()
		for range 10_000 { // a goroutine that waits for a mutex keeps synctest.Wait from returning
			runtime.Gosched()
		}
		early := len(next)
		e.telling.Unlock()
		require.Zero(t, early)
		second := <-p.dials
		p.answerHello(second, 1, 6*time.Second)
		require.NoError(t, <-next)
		require.NotSame(t, w, e.current())
		second.Close()
		closeAll(p, c)
	})
}
