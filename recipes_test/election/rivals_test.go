package election_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

// electionCalls is every call of an election that tells or decides who leads.
var electionCalls = map[string]func(ctx context.Context, e *zkelection.Election) error{
	"Campaign":    func(ctx context.Context, e *zkelection.Election) error { _, err := e.Campaign(ctx); return err },
	"TryCampaign": func(ctx context.Context, e *zkelection.Election) error { _, err := e.TryCampaign(ctx); return err },
	"Leader":      func(ctx context.Context, e *zkelection.Election) error { _, err := e.Leader(ctx); return err },
	"Candidates":  func(ctx context.Context, e *zkelection.Election) error { _, err := e.Candidates(ctx); return err },
	"Run": func(ctx context.Context, e *zkelection.Election) error {
		return e.Run(ctx, func(context.Context, *zksync.Lease) error { panic("leads") })
	},
	"Observe": func(ctx context.Context, e *zkelection.Election) (err error) {
		for _, err = range e.Observe(ctx) {
		}
		return err
	},
}

func TestAnElectionRefusesThePathOfALeaderLatch(t *testing.T) {
	for name, call := range electionCalls {
		t.Run(name, func(t *testing.T) {
			proving.Each(t, func(t *testing.T, v *proving.Env) {
				ctx, cancel := context.WithTimeout(context.Background(), v.Patience())
				defer cancel()
				v.Put(proving.ElectionPath+"/"+proving.LatchNode, "")
				e := elections(v, 1)[0]
				proving.Refuses(t, call(ctx, e), proving.ElectionPath, proving.LatchNode)
				v.Left(proving.ElectionPath, 1, "nothing of ours")
				v.Remove(proving.ElectionPath + "/" + proving.LatchNode)
				require.NoError(t, v.Get(e.Campaign).Unlock())
			})
		})
	}
}

// A latch that begins later heeds nobody of ours, and nobody of ours who leads or waits looks for it.
// Whoever comes, or looks again, refuses.
func TestAnElectionRefusesToGoOnBesideALaterLeaderLatch(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		es := elections(v, 5)
		leader := v.Get(es[0].Campaign)
		var waiting []*proving.Attempt
		for i, e := range es[1:4] {
			waiting = append(waiting, proving.Call(context.Background(), e.Campaign))
			v.Settled(proving.ElectionPath, i+2)
		}
		v.Put(proving.ElectionPath+"/"+proving.LatchNode, "")
		for _, call := range electionCalls {
			proving.Refuses(t, call(context.Background(), es[4]), proving.ElectionPath, proving.LatchNode)
		}
		if v.Virtual {
			v.Settled(proving.ElectionPath, 5)
		}
		require.True(t, leader.Valid())
		require.NoError(t, leader.Unlock())
		if !v.Virtual { // they may have waited for so long that they have looked: before the latch came, or after
			for _, w := range waiting {
				if v.Awaits(w.Done, "the call to return"); w.Err != nil {
					proving.Refuses(t, w.Err, proving.ElectionPath, proving.LatchNode)
				} else {
					require.NoError(t, w.Lease.Unlock())
				}
			}
			return
		}
		next := v.Granted(waiting[0]) // it knew that it was next
		require.True(t, next.Valid())
		require.NoError(t, next.Unlock())
		proving.Refuses(t, v.Failed(waiting[1]), proving.ElectionPath, proving.LatchNode)
		proving.Refuses(t, v.Failed(waiting[2]), proving.ElectionPath, proving.LatchNode)
		v.Queued(proving.ElectionPath, 1)
	})
}

func TestALockRefusesThePathOfALeaderLatch(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath+"/"+proving.LatchNode, "")
		m := v.Mutexes(1)[0]
		for _, lock := range []func(context.Context) (*zksync.Lease, error){m.LockContext, m.TryLockContext} {
			_, err := lock(context.Background())
			proving.Refuses(t, err, proving.LockPath, "LeaderLatch of Curator")
		}
		v.Left(proving.LockPath, 1, "nothing of ours")
		require.Empty(t, v.Data(proving.LockPath))
		v.Remove(proving.LockPath + "/" + proving.LatchNode)
		require.NoError(t, v.Lock(m).Unlock())
	})
}
