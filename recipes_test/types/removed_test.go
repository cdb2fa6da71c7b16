package types_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkdurable"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// These have a base node with data.
var based = map[string]user{
	"phaser": registers(), "barrier": meets(1), "double barrier": double(1), "double barrier of two": double(2), "latch": counts,
	"number": func(s *zksync.Session) func(context.Context) error {
		n := zkatomic.NewInt64(s, "/far")
		return func(ctx context.Context) error { _, err := n.Add(ctx, 1); return err }
	},
	"value": func(s *zksync.Session) func(context.Context) error {
		x := zkatomic.NewValue[int](s, "/far")
		return func(ctx context.Context) error {
			_, err := x.Update(ctx, func(old int, _ bool) (int, error) { return old + 1, nil })
			return err
		}
	},
	"slots": func(s *zksync.Session) func(context.Context) error {
		x := zkatomic.NewSlots(s, "/far", 3)
		return func(ctx context.Context) error {
			_, l, err := x.Acquire(ctx)
			if err == nil {
				err = l.Unlock()
			}
			return err
		}
	},
	"map": func(s *zksync.Session) func(context.Context) error {
		m := zkmap.New[string, int](s, "/far")
		return func(ctx context.Context) error {
			_, err := m.Update(ctx, "k", func(old int, _ bool) (int, bool, error) { return old + 1, true, nil })
			return err
		}
	},
	"queue": func(s *zksync.Session) func(context.Context) error {
		q := zkqueue.New[int](s, "/far", zkqueue.WithCapacity(2))
		return both(func(ctx context.Context) error { return q.Put(ctx, 1) },
			func(ctx context.Context) error { _, err := q.Take(ctx); return err })
	},
	"durable lock": func(s *zksync.Session) func(context.Context) error {
		m := zkdurable.NewMutex(s, "/far")
		return func(ctx context.Context) error {
			h, err := m.Lock(ctx, fmt.Sprint(s.ID()))
			if err == nil {
				err = h.Unlock(ctx)
			}
			return err
		}
	},
	"group": func(s *zksync.Session) func(context.Context) error {
		g := zkgroup.New(s, "/far")
		return func(ctx context.Context) error {
			m, err := g.Join(ctx, zkgroup.Member{ID: fmt.Sprint(s.ID())})
			if err == nil {
				err = m.Leave(ctx)
			}
			return err
		}
	},
}

// The queues of a type are below its base node. A call that queues must not create that node without data.
func TestATypeGoesOnWhenAllItsNodesWereRemoved(t *testing.T) {
	for kind, use := range based {
		t.Run(kind, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var mu sync.Mutex
				last, errors := make([]time.Time, 6), map[string]int{}
				for i := range last {
					s := v.Session()
					call := use(s)
					away := time.Millisecond + time.Duration(i)*4*time.Millisecond
					v.Server.Delay(s.ID(), away, away)
					go func() {
						for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
							err := call(ctx)
							mu.Lock()
							if errors[fmt.Sprint(err)]++; err == nil {
								last[i] = time.Now()
							} else if ctx.Err() == nil {
								assert.NotContains(t, err.Error(), "the data of the node")
							}
							mu.Unlock()
						}
					}()
				}
				for i := range 25 {
					time.Sleep(200*time.Millisecond + time.Duration(i)*time.Millisecond)
					v.Server.DeleteAll("/far")
				}
				removed := time.Now()
				for i := range last {
					for deadline := removed.Add(12 * time.Second); ; time.Sleep(50 * time.Millisecond) {
						mu.Lock()
						if goes := last[i].After(removed); goes || time.Now().After(deadline) {
							assert.True(t, goes, "process %d: %v", i, errors)
							mu.Unlock()
							break
						}
						mu.Unlock()
					}
				}
			})
		})
	}
}

// All nodes are removed when a slot is free, and before it is taken.
func TestSlotsAreCreatedAgainIfRemovedBeforeOneIsTaken(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		acquire := based["slots"](v.Session())
		require.NoError(t, acquire(t.Context()))
		var once sync.Once
		v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Op == zktest.Multi && strings.Contains(q.Path, "/taken/") {
				once.Do(func() { v.Server.DeleteAll("/far") })
			}
			return verdict
		})
		require.NoError(t, acquire(t.Context()))
		require.NoError(t, based["slots"](v.Session())(t.Context()))
	})
}

// One node after the other is removed, with pauses.
func TestAMemberJoinsAgainAGroupThatIsRemovedStepByStep(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m, err := zkgroup.New(v.Session(), "/far").Join(t.Context(), zkgroup.Member{ID: "a"})
		require.NoError(t, err)
		defer m.Leave(context.Background())
		v.Server.DeleteAll("/far/zkgroup/members")
		time.Sleep(20 * time.Millisecond)
		v.Server.DeleteAll("/far")
		v.Server.Wait(t, "the member", func() bool { return v.Exists("/far/zkgroup/members/a") })
		require.NoError(t, m.SetData(t.Context(), []byte("b")))
	})
}

// Somebody has removed a part of the nodes, and removes the rest while a party makes what is missing.
func TestADoubleBarrierIsCreatedAgainIfRemovedDuringARepair(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		b := zkbarrier.NewDoubleBarrier(v.Session(), "/far", 1)
		require.NoError(t, b.Enter(t.Context()))
		require.NoError(t, b.Leave(t.Context()))
		v.Server.DeleteAll("/far/parties")
		v.Server.DeleteAll("/far/gathering-1")
		var once sync.Once
		v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Path == "/far/parties" && (q.Op == zktest.Create || q.Op == zktest.Multi) {
				once.Do(func() { v.Server.DeleteAll("/far") })
			}
			return verdict
		})
		require.NoError(t, b.Enter(t.Context()))
		require.NoError(t, b.Leave(t.Context()))
		require.False(t, v.Exists("/far/turns"))
	})
}

// A consumer waits for elements, and others that are nearer put and take without a pause. Somebody removes the place in the line that
// keeps them from being quicker.
func TestATakeWhosePlaceIsRemovedQueuesAgain(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s := v.Session()
		take := proving.Waits(ctx, func(ctx context.Context) error {
			_, err := zkqueue.New[int](s, "/far").Take(ctx)
			return err
		})
		v.Quiet()
		v.Server.Delay(s.ID(), 20*time.Millisecond, 20*time.Millisecond)
		const takers = "/far/zkqueue/takers"
		v.Server.DeleteAll(takers + "/" + v.Server.Children(takers)[0])
		_, longest := busy(ctx, t, v, func(s *zksync.Session) func(context.Context) error {
			q := zkqueue.New[int](s, "/far")
			return both(func(ctx context.Context) error { return q.Put(ctx, 1) },
				func(ctx context.Context) error { _, err := q.Take(ctx); return err })
		}, 1, time.Millisecond/2)
		time.Sleep(5 * time.Second)
		require.False(t, take.Pending())
		require.NoError(t, take.Err)
		stop()
		longest()
	})
}

// All nodes are removed while a call has closed the gate, before it reads. The nearer process creates them again, with an open gate.
func TestAChangeDoesNotTakeARemovedGateForClosed(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		_, longest := busy(ctx, t, v, based["value"], 1, time.Millisecond/2)
		s := v.Session()
		change := based["value"](s)
		v.Server.Delay(s.ID(), 20*time.Millisecond, 20*time.Millisecond)
		var removed sync.Once
		was := false
		v.Server.InterceptFunc(func(q *zktest.Request) (verdict zktest.Verdict) {
			if q.Session == s.ID() && q.Op == zktest.GetData && v.Exists("/far/zkatomic.Value/value") && !v.Exists("/far/zkatomic.Value/open") {
				removed.Do(func() { was = true; v.Server.DeleteAll("/far") })
			}
			return verdict
		})
		within, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		require.NoError(t, change(within))
		require.True(t, was)
		stop()
		longest()
	})
}
