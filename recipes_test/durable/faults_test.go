package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// play is a scenario with a hold of "a" that is unlocked, one of "b" that is broken, one of "c" that another process
// resumes, and a try. Whatever happens to one request of it, each call succeeds, and has the effect that it tells.
func play(v *proving.Env, name string, ms []*zkdurable.Mutex) {
	t := v.T
	t.Helper()
	limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	a, err := ms[0].Lock(limited, "a")
	require.NoError(t, err, name)
	waiting := begins(limited, ms[1], "b")
	require.NoError(t, a.SetNote(limited, "half"), name)
	time.Sleep(time.Second)
	x, err := ms[2].Holder(limited)
	require.NoError(t, err, name)
	require.Equal(t, []any{"a", a.Token(), "half"}, []any{x.Owner, x.Token, x.Note}, name)
	require.True(t, waiting.Pending(), name)
	require.NoError(t, a.Unlock(limited), name)

	v.Awaits(waiting.Done, "the wait to end")
	require.NoError(t, waiting.Err, name)
	b := waiting.hold
	require.Positive(t, b.Token().Compare(a.Token()), name)
	require.NoError(t, ms[2].Break(limited, b.Token(), "a reason"), name)
	v.Awaits(b.Done(), "Done")
	require.ErrorIs(t, b.Err(), zksync.ErrLost, name)
	require.ErrorContains(t, b.Unlock(limited), "a reason", name)

	c, err := ms[0].TryLock(limited, "c")
	if errors.Is(err, zksync.ErrNotAcquired) && strings.HasPrefix(name, "silence") {
		c, err = ms[0].Lock(limited, "c") // its entry of the session before was in its way
	}
	require.NoError(t, err, name)
	by, why := c.Broken()
	require.Equal(t, "process 2, a reason", by+", "+why, name)
	require.Positive(t, c.Token().Compare(b.Token()), name)
	require.NoError(t, c.Err(), name)
	require.NoError(t, c.Unlock(limited), name)
	require.ErrorIs(t, a.Unlock(limited), zksync.ErrReleased, name)

	dying := v.Session()
	d, err := zkdurable.NewMutex(dying, path).Lock(limited, "d")
	require.NoError(t, err, name)
	require.NoError(t, dying.Close(), name)
	resumed, err := ms[1].Resume(limited, "d")
	for ; errors.Is(err, zksync.ErrNotAcquired); resumed, err = ms[1].Resume(limited, "d") {
		time.Sleep(time.Second) // the session of the process that died lives
	}
	require.NoError(t, err, name)
	require.Equal(t, d.Token(), resumed.Token(), name)
	require.NoError(t, resumed.Unlock(limited), name)
}

// free checks that the lock is free in the end, and that nothing is left.
func free(v *proving.Env, name string, m *zkdurable.Mutex) {
	v.T.Helper()
	v.Later()
	x, err := m.Holder(ctx)
	require.NoError(v.T, err, name)
	require.Equal(v.T, zkdurable.Holder{}, x, name)
	require.Equal(v.T, []string{"queue", "writers"}, v.Children(base), name)
	require.Empty(v.T, v.Children(base+"/queue"), name)
}

func TestAcceptance141EveryFaultLeavesADurableLockSound(t *testing.T) {
	proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
		ms := mutexes(v, 3)
		return func(name string) {
			play(v, name, ms)
			free(v, name, ms[0])
		}
	})
}

func TestAcceptance141EveryDisconnectLeavesADurableLockSound(t *testing.T) {
	proving.EveryTrouble(t, "disconnect", proving.Disconnects, func(t *testing.T, v *proving.Env) func(string, func()) {
		ms := mutexes(v, 3)
		return func(name string, calm func()) {
			play(v, name, ms)
			calm()
			free(v, name, ms[0])
		}
	})
}

// A session may end at any request. The calls go on in the next one.
func TestAcceptance141EveryEndOfASessionLeavesADurableLockSound(t *testing.T) {
	proving.EveryTrouble(t, "expire", proving.Expires, func(t *testing.T, v *proving.Env) func(string, func()) {
		ms := mutexes(v, 3)
		return func(name string, calm func()) {
			play(v, name, ms)
			calm()
			free(v, name, ms[0])
		}
	})
}

// The client gives up its session before the servers do, and they keep the nodes of that for a while.
func TestAcceptance141EverySilenceLeavesADurableLockSound(t *testing.T) {
	happen := func(v *proving.Env, session int64) {
		heal := v.Server.DropReplies(session)
		time.AfterFunc(25*time.Second, heal)
	}
	proving.EveryTrouble(t, "silence", happen, func(t *testing.T, v *proving.Env) func(string, func()) {
		ms := mutexes(v, 3)
		return func(name string, calm func()) {
			play(v, name, ms)
			calm()
			free(v, name, ms[0])
		}
	})
}

// A call that is cancelled at any of its requests has no effect that its caller does not know of.
func TestACancelledLockOfADurableLockIsGivenBack(t *testing.T) {
	for _, try := range []bool{false, true} {
		for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate} {
			proving.EveryRequest(t, fmt.Sprintf("fate %v, try %v", fate, try), func(s *proving.Strike) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ms := mutexes(v, 3)
					require.NoError(t, locks(v, ms[2], "before").Unlock(ctx))
					v.Quiet()
					cancelled, cancel := v.CancelledAt(s, fate)
					defer cancel()
					lock := ms[0].Lock
					if try {
						lock = ms[0].TryLock
					}
					h, err := lock(cancelled, "a")
					if err == nil { // the answer was there first
						require.NoError(t, h.Unlock(ctx), s.Name)
					} else {
						require.ErrorIs(t, err, context.Canceled, s.Name)
					}
					limited, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					next, err := ms[1].Lock(limited, "b")
					require.NoError(t, err, s.Name)
					require.NoError(t, next.Unlock(ctx), s.Name)
					free(v, s.Name, ms[0])
				})
			})
		}
	}
}

func TestACancelledResumeLeavesTheHoldToOthers(t *testing.T) {
	for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate} {
		proving.EveryRequest(t, fmt.Sprintf("fate %v", fate), func(s *proving.Strike) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ms := mutexes(v, 2)
				dying := v.Session()
				token := locks(v, zkdurable.NewMutex(dying, path), "a").Token()
				require.NoError(t, dying.Close())
				v.Quiet()
				cancelled, cancel := v.CancelledAt(s, fate)
				defer cancel()
				h, err := ms[0].Resume(cancelled, "a")
				v.Later()
				if err == nil {
					require.NoError(t, h.Unlock(ctx), s.Name)
					return
				}
				require.ErrorIs(t, err, context.Canceled, s.Name)
				h, err = ms[1].Resume(ctx, "a")
				require.NoError(t, err, s.Name)
				require.Equal(t, token, h.Token(), s.Name)
				require.NoError(t, h.Unlock(ctx), s.Name)
				free(v, s.Name, ms[0])
			})
		})
	}
}

// An Unlock, a Break and a SetNote that are cancelled may have had their effect, and say so; they never have it on a
// later hold.
func TestACancelledEndOfAHoldNeverEndsTheNext(t *testing.T) {
	for what, call := range map[string]func(context.Context, *zkdurable.Mutex, *zkdurable.Hold) error{
		"unlock": func(ctx context.Context, _ *zkdurable.Mutex, h *zkdurable.Hold) error { return h.Unlock(ctx) },
		"break": func(ctx context.Context, m *zkdurable.Mutex, h *zkdurable.Hold) error {
			return m.Break(ctx, h.Token(), "why")
		},
		"note": func(ctx context.Context, _ *zkdurable.Mutex, h *zkdurable.Hold) error {
			return h.SetNote(ctx, "a's")
		},
	} {
		for _, fate := range []zktest.Fate{zktest.Continue, zktest.LoseReply, zktest.LoseRequest, zktest.Duplicate} {
			proving.EveryRequest(t, fmt.Sprintf("%s, fate %v", what, fate), func(s *proving.Strike) {
				proving.InProcess(t, func(t *testing.T, v *proving.Env) {
					ms := mutexes(v, 3)
					h := locks(v, ms[0], "a")
					v.Quiet()
					cancelled, cancel := v.CancelledAt(s, fate)
					defer cancel()
					err := call(cancelled, ms[1], h)
					if err != nil {
						require.ErrorIs(t, err, context.Canceled, s.Name)
					}
					x, lookErr := ms[2].Holder(ctx)
					require.NoError(t, lookErr, s.Name)
					if x.Owner != "" && what != "note" {
						require.Error(t, err, s.Name)
						if err := h.Unlock(ctx); what == "unlock" || !errors.Is(err, zksync.ErrLost) {
							require.NoError(t, err, s.Name)
						}
					} else if what == "note" || what == "unlock" && err != nil {
						require.NoError(t, h.Unlock(ctx), "%s: the second call tells that the first one has ended the hold", s.Name)
					}
					limited, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					next, err := ms[2].Lock(limited, "b")
					require.NoError(t, err, s.Name)
					v.Later()
					require.NoError(t, next.Err(), s.Name)
					x, err = ms[1].Holder(ctx)
					require.NoError(t, err, s.Name)
					require.Equal(t, []any{"b", "", true}, []any{x.Owner, x.Note, x.Alive}, s.Name)
					require.NoError(t, next.Unlock(ctx), s.Name)
					free(v, s.Name, ms[0])
				})
			})
		}
	}
}
