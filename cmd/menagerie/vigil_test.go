//go:build unix

package main

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What begins when the wait is over must not end with the time for waiting.
func TestAWaitThatIsOverEndsNothingAnyMore(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	a := &app{stdout: io.Discard, stderr: io.Discard}
	a.servers, a.timeout = s.addr, positiveDuration(defaultTimeout)
	o := lockOptions{path: "/a", wait: time.Since(started) + 3*time.Second}
	require.NoError(t, a.waiting(context.Background(), o, "test", func(w *vigil) error {
		require.NoError(t, w.end())
		<-time.After(time.Until(started.Add(o.wait)) + 50*time.Millisecond)
		return w.ctx.Err()
	}))
	o.wait = time.Since(started) + 200*time.Millisecond
	var coded *exitError
	require.ErrorAs(t, a.waiting(context.Background(), o, "test", func(w *vigil) error {
		<-w.ctx.Done()
		return w.end()
	}), &coded)
	require.Equal(t, exitNotObtained, coded.code)
}
