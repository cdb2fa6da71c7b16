package session_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The event that lets a waiter in may be all that its session has heard of a state. Then the handshake does not name it.
func TestAConnectionBeginsWithASyncAfterAnEventThatNoAnswerHasFollowed(t *testing.T) {
	for _, c := range []struct {
		name, version string
		answered      bool
		first         []zktest.Op
	}{
		{"no answer", "3.8", false, []zktest.Op{zktest.Sync}},
		{"an answer", "3.8", true, nil},
		{"an event with a zxid", "3.9", false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
				s := v.Session()
				next := proving.Begin(t.Context(), zksync.NewMutex(s, proving.LockPath))
				v.Quiet()
				time.Sleep(10 * time.Millisecond) // so that no heartbeat's answer comes in the instant of the event
				v.Unlocks(l, nil)
				v.Awaits(next.Done, "Lock")
				require.NoError(t, next.Err)
				if c.answered {
					_, err := next.Lease.Guard(t.Context())
					require.NoError(t, err)
				}
				before := len(v.Server.Log())
				v.Server.Disconnect(s.ID())
				time.Sleep(10 * time.Millisecond) // less than the interval of heartbeats, which are syncs, too
				var sent []zktest.Op
				for _, q := range v.Server.Log()[before:] {
					if q.Session == s.ID() && !slices.Contains([]zktest.Op{zktest.Connect, zktest.Ping}, q.Op) {
						sent = append(sent, q.Op)
					}
				}
				require.Equal(t, c.first, sent)
				v.Unlocks(next.Lease, nil)
			}, zktest.WithVersion(c.version))
		})
	}
}
