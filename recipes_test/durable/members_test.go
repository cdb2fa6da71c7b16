package durable_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A copy of a request waits in the queue of a server, while the session goes to another one and sends the request again.
// It arrives when another owner holds.
func TestARequestOfADurableLockThatArrivesLateChangesNoLaterHold(t *testing.T) {
	for what, c := range map[string]struct {
		rule *zktest.Rule
		ends func(ctx context.Context, m *zkdurable.Mutex, h *zkdurable.Hold) error
	}{
		"grant": {zktest.On(zktest.Create, base+"/hold-*"), func(ctx context.Context, _ *zkdurable.Mutex, h *zkdurable.Hold) error { return h.Unlock(ctx) }},
		"unlock": {zktest.On(zktest.Delete, base+"/hold-*"), func(ctx context.Context, _ *zkdurable.Mutex, h *zkdurable.Hold) error {
			return h.Unlock(ctx)
		}},
		"break": {zktest.On(zktest.Delete, base+"/hold-*"), func(ctx context.Context, m *zkdurable.Mutex, h *zkdurable.Hold) error {
			return m.Break(ctx, h.Token(), "why")
		}},
		"note": {zktest.On(zktest.Check, base+"/hold-*"), func(ctx context.Context, _ *zkdurable.Mutex, h *zkdurable.Hold) error {
			if err := h.SetNote(ctx, "late"); err != nil {
				return err
			}
			return h.Unlock(ctx)
		}},
	} {
		for _, used := range []bool{false, true} { // the session has made a change before
			t.Run(what, func(t *testing.T) {
				proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
					s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
					m, other := zkdurable.NewMutex(s, path), zkdurable.NewMutex(e.SessionAt(t, 1), path)
					first := other
					if used {
						first = m
					}
					h, err := first.Lock(ctx, "first")
					require.NoError(t, err)
					require.NoError(t, h.Unlock(ctx))
					time.Sleep(time.Second)

					rule := *c.rule
					late := e.Intercept(rule.Of(s.ID()).Nth(1).Hold().Queued())
					go func() {
						for late.Held() == 0 {
							time.Sleep(10 * time.Millisecond)
						}
						e.Disconnect(s.ID())
					}()
					h, err = m.Lock(ctx, "a")
					require.NoError(t, err)
					require.NoError(t, c.ends(ctx, m, h))
					require.Equal(t, 1, late.Held())
					later, err := other.Lock(ctx, "b")
					require.NoError(t, err)
					before := e.Server(2).Tree()
					for e.At(s.ID()) != 0 {
						e.Disconnect(s.ID())
						time.Sleep(100 * time.Millisecond)
					}
					late.Release()
					time.Sleep(time.Second)
					require.NoError(t, later.Err())
					x, err := m.Holder(ctx)
					require.NoError(t, err)
					require.Equal(t, []any{"b", later.Token(), ""}, []any{x.Owner, x.Token, x.Note}, before)
					require.NoError(t, later.Unlock(ctx))
					for _, c := range e.Server(2).Children(base) {
						require.False(t, strings.HasPrefix(c, "hold-"), "%s lasts", c)
					}
				})
			})
		}
	}
}

// A server that lags still shows a hold that has ended. It is not taken for one of the owner.
func TestAServerThatLagsRefusesNoOwner(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		m, other := zkdurable.NewMutex(e.SessionAt(t, 1), path), zkdurable.NewMutex(e.SessionAt(t, 0), path)
		h, err := m.Lock(ctx, "a")
		require.NoError(t, err)
		time.Sleep(time.Second)
		catchUp := e.Lag(0)
		require.NoError(t, h.Unlock(ctx))
		time.AfterFunc(time.Second, catchUp)
		h, err = other.Lock(ctx, "a")
		require.NoError(t, err)
		require.NoError(t, h.Unlock(ctx))
	})
}
