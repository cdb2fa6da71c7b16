package proving

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// Deadline is how long calls are given that cannot succeed.
const Deadline = 300 * time.Millisecond

// Soon is a context that ends after the deadline, and when it was made.
func Soon(t *testing.T) (context.Context, time.Time) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), Deadline)
	t.Cleanup(cancel)
	return ctx, start
}

// Away disconnects a session for a while that is shorter than its timeout, and leaves time for a stall of
// the server to which it comes back.
var Away = map[string]func(t *testing.T, v *Env, s *zksync.Session){
	"for a moment": func(t *testing.T, v *Env, s *zksync.Session) { v.Disconnect(s) },
	"for long": func(t *testing.T, v *Env, s *zksync.Session) {
		heal := v.CutOff(s)
		defer heal()
		Pause(t, v, v.Span(s.Timeout()/2, s.Timeout()/3))
	},
	"into a black hole": func(t *testing.T, v *Env, s *zksync.Session) {
		heal := v.Partition(s)
		defer heal()
		Pause(t, v, v.Span(s.Timeout()/2, s.Timeout()/3))
	},
}

// Pause lets an outage last.
func Pause(t *testing.T, v *Env, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// Connected waits until the session has a connection again.
func (v *Env) Connected(s *zksync.Session) {
	v.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
	defer cancel()
	changes := s.Changes(ctx) // from here on, so that none is missed after the look at the state
	if s.State() == zksync.Connected {
		return
	}
	for st := range changes {
		if st == zksync.Connected {
			return
		}
	}
	require.Equal(v.T, zksync.Connected, s.State())
}
