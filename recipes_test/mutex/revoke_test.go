package mutex_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// contender is the first contender of the lock.
func contender(v *proving.Env, s *zksync.Session) zksync.Contender {
	v.T.Helper()
	v.Flush() // the server of s may lag
	list, err := zksync.Contenders(context.Background(), s, proving.LockPath)
	require.NoError(v.T, err)
	require.NotEmpty(v.T, list)
	return list[0]
}

func TestAcceptance158TheHolderIsToldWithinOneRoundTrip(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		told := l.Revoked()
		v.Quiet()
		c := contender(v, other)
		v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
		start := time.Now()
		require.NoError(t, zksync.Revoke(context.Background(), other, c))
		v.Awaits(told, "the holder to be told")
		v.Took(start, 20*time.Millisecond, "the way from the servers to the holder")
		require.NoError(t, l.Err(), "it is only asked")
		require.True(t, l.Valid())
		require.NoError(t, l.Unlock())
		v.Left(proving.LockPath, 0, "released")
	})
}

func TestAcceptance158OneThatIgnoresItKeepsTheLock(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		other := v.Session()
		l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		told := l.Revoked()
		next := proving.Begin(context.Background(), zksync.NewMutex(other, proving.LockPath))
		v.Settled(proving.LockPath, 3)
		c := contender(v, other)
		for range 3 {
			require.NoError(t, zksync.Revoke(context.Background(), other, c))
		}
		v.Awaits(told, "the holder to be told")
		time.Sleep(v.Span(time.Hour, time.Second))
		require.True(t, next.Pending())
		require.True(t, l.Valid())
		_, err := l.Guard(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		after := v.Granted(next)
		require.False(t, proving.IsClosed(after.Revoked()), "the next hold was not asked")
		v.Quiet()
		require.False(t, proving.IsClosed(after.Revoked()))
		require.NoError(t, after.Unlock())
		v.Left(proving.LockPath, 0, "released")
	})
}

// Whoever begins to listen later hears of it, too.
func TestAcceptance158TheRequestMayComeBeforeTheHolderListens(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		other := v.Session()
		m := zksync.NewMutex(v.Session(), proving.LockPath)
		l := v.Lock(m)
		require.NoError(t, zksync.Revoke(context.Background(), other, contender(v, other)))
		v.Left(proving.LockPath, 2, "the request waits")
		v.Awaits(l.Revoked(), "the holder to be told")
		require.NoError(t, l.Unlock())
		v.Left(proving.LockPath, 0, "released")
		l = v.Lock(m)
		require.False(t, proving.IsClosed(l.Revoked()))
		require.NoError(t, l.Unlock())
	})
}

func TestAcceptance158ASessionMayAskItself(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		m := zksync.NewMutex(s, proving.LockPath)
		for _, listens := range []bool{false, true} {
			l := v.Lock(m)
			if listens {
				l.Revoked()
				v.Queued(proving.LockPath, 2)
			}
			require.NoError(t, zksync.Revoke(t.Context(), s, contender(v, s)))
			v.Awaits(l.Revoked(), "the holder to be told")
			require.NoError(t, l.Unlock())
			v.Quiet()
			v.Left(proving.LockPath, 0, "released")
		}
	})
}

func TestAcceptance158AWaiterHearsOfItWhenItIsGranted(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		other := v.Session()
		l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		next := proving.Begin(context.Background(), zksync.NewMutex(v.Session(), proving.LockPath))
		v.Settled(proving.LockPath, 2)
		v.Flush()
		list, err := zksync.Contenders(t.Context(), other, proving.LockPath)
		require.NoError(t, err)
		require.NoError(t, zksync.Revoke(t.Context(), other, list[1]))
		require.NoError(t, l.Unlock())
		after := v.Granted(next)
		v.Awaits(after.Revoked(), "the holder to be told")
		require.NoError(t, after.Unlock())
		v.Left(proving.LockPath, 0, "released")
	})
}

// Nothing is left when the holder never listens, whoever ends first.
func TestAcceptance158NoRequestIsLeft(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, v *proving.Env, l *zksync.Lease, holder, other *zksync.Session){
		"Unlock": func(t *testing.T, _ *proving.Env, l *zksync.Lease, _, _ *zksync.Session) {
			require.NoError(t, l.Unlock())
		},
		"the end of the holder's session": func(_ *testing.T, v *proving.Env, _ *zksync.Lease, holder, _ *zksync.Session) {
			v.Expire(holder)
		},
		"the removal of the node": func(_ *testing.T, v *proving.Env, l *zksync.Lease, _, _ *zksync.Session) {
			v.Remove(l.Node())
			v.Awaits(l.Done(), "the holder to be told")
		},
		"the end of the session that asked": func(t *testing.T, v *proving.Env, l *zksync.Lease, _, other *zksync.Session) {
			v.Expire(other)
			v.Left(proving.LockPath, 1, "the entry")
			require.NoError(t, l.Unlock())
		},
	} {
		for _, listens := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				proving.Each(t, func(t *testing.T, v *proving.Env) {
					holder, other := v.Session(), v.Session()
					l := v.Lock(zksync.NewMutex(holder, proving.LockPath))
					if listens {
						l.Revoked()
						v.Queued(proving.LockPath, 2)
					}
					require.NoError(t, zksync.Revoke(t.Context(), other, contender(v, other)))
					v.Left(proving.LockPath, 2, "the entry and the request")
					v.Quiet()
					if listens && strings.HasSuffix(name, "asked") {
						require.NoError(t, l.Unlock())
						return
					}
					end(t, v, l, holder, other)
					v.Quiet()
					v.Left(proving.LockPath, 0, name)
				})
			})
		}
	}
}

// Whoever holds after the one that was asked, in the same process, queues again: it was not asked.
func TestAcceptance158TheNodeIsNotHandedOverAfterARequest(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		other := v.Session()
		m := zksync.NewMutex(v.Session(), proving.LockPath, zksync.WithLinger(time.Hour))
		l := v.Lock(m)
		told := l.Revoked()
		next := proving.Begin(context.Background(), m)
		foreign := proving.Begin(context.Background(), zksync.NewMutex(other, proving.LockPath))
		v.Settled(proving.LockPath, 3)
		require.NoError(t, zksync.Revoke(t.Context(), other, contender(v, other)))
		v.Awaits(told, "the holder to be told")
		require.NoError(t, l.Unlock())
		after := v.Granted(foreign)
		require.True(t, next.Pending())
		require.NoError(t, after.Unlock())
		again := v.Granted(next)
		require.False(t, proving.IsClosed(again.Revoked()))
		require.NoError(t, again.Unlock())
	})
}

func TestAcceptance158WhatARevocationCosts(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		v.Put(proving.LockPath, "")
		other := proving.Calm(v)
		m := zksync.NewMutex(proving.Calm(v), proving.LockPath)
		l := v.Lock(m)
		watches := v.Watches()
		v.Costs(3, func() { l.Revoked() }, "the node, its watch, and a look")
		v.Costs(0, func() { l.Revoked() })
		require.Equal(t, watches+1, v.Watches())
		c := contender(v, other)
		v.Costs(1, func() { require.NoError(t, zksync.Revoke(context.Background(), other, c)) })
		v.Costs(2, func() { require.NoError(t, l.Unlock()) }, "the node of the request, and the entry")
		require.Equal(t, watches, v.Watches())

		l = v.Lock(m)
		c = contender(v, other)
		v.Costs(3, func() { require.NoError(t, zksync.Revoke(context.Background(), other, c)) }, "a write, the node, and a watch")
		v.Costs(2, func() { require.NoError(t, l.Unlock()) }, "the entry, and the node of the request")
		v.Left(proving.LockPath, 0, "released")

		v.Costs(2, func() { require.NoError(t, v.Lock(m).Unlock()) }, "who does not listen pays nothing")
	})
}

func TestAcceptance158AThousandHoldsThatListenLeaveNothing(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		m := zksync.NewMutex(v.Session(), proving.LockPath)
		hold := func() {
			l := v.Lock(m)
			l.Revoked()
			v.Quiet()
			require.NoError(t, l.Unlock())
			v.Quiet()
			require.Empty(t, v.Children(proving.LockPath))
		}
		hold()
		goroutines, watches := v.Goroutines(), v.Watches()
		for range proving.Rounds(1000) {
			hold()
		}
		// Without a pause: the request is on its way when the hold ends.
		for range proving.Rounds(1000) {
			l := v.Lock(m)
			l.Revoked()
			require.NoError(t, l.Unlock())
		}
		v.Later()
		require.Empty(t, v.Children(proving.LockPath))
		v.GoroutinesBack(goroutines)
		require.Equal(t, watches, v.Watches())
	})
}

func TestAcceptance158WhatCannotBeAsked(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		l := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
		c := contender(v, s)
		require.NoError(t, l.Unlock())
		v.Left(proving.LockPath, 0, "released")
		require.ErrorIs(t, zksync.Revoke(t.Context(), s, c), zksync.ErrStale)
		v.Left(proving.LockPath, 0, "nothing is made for it")

		var wrong *zksync.Error
		err := zksync.Revoke(t.Context(), s, zksync.Contender{Node: proving.LockPath})
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, "revoke", wrong.Op)
		require.ErrorIs(t, zksync.Revoke(t.Context(), s, zksync.Contender{}), zksync.ErrMisuse)
		require.ErrorIs(t, zksync.Revoke(t.Context(), nil, c), zksync.ErrMisuse)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, zksync.Revoke(ctx, s, c), context.Canceled)
		closed, err := v.Connect(t.Context())
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		require.ErrorIs(t, zksync.Revoke(t.Context(), closed, c), zksync.ErrClosed)
	})
}

// Sealed entries accept no writes of others, so the request is a node beside them.
func TestAcceptance158ASealedEntryIsAskedLikeEveryOther(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(5)
		throng(v, ms)
		other := v.Session()
		line := v.Line(ms...)
		var last *zksync.Lease
		for i, a := range line {
			if last = v.Granted(a); i == len(line)-1 {
				break
			}
			require.NoError(t, last.Unlock())
		}
		c := contender(v, other)
		require.Equal(t, 1, sealed(v))
		told := last.Revoked()
		require.NoError(t, zksync.Revoke(t.Context(), other, c))
		v.Awaits(told, "the holder to be told")
		require.NoError(t, last.Unlock())
		v.Left(proving.LockPath, 0, "released")
	})
}

// Permits are held by many, and each is asked for itself.
func TestAcceptance158AHolderOfPermitsCanBeAsked(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		other := v.Session()
		w := zksemaphore.NewWeighted(v.Session(), proving.SemPath, 3)
		permit := func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 1) }
		a, b := v.Get(permit), v.Get(permit)
		v.Flush()
		list, err := zksync.Contenders(t.Context(), other, proving.SemPath)
		require.NoError(t, err)
		first, second := a.Revoked(), b.Revoked()
		require.NoError(t, zksync.Revoke(t.Context(), other, list[1]))
		v.Awaits(second, "the holder to be told")
		v.Quiet()
		require.False(t, proving.IsClosed(first))
		require.NoError(t, a.Unlock())
		require.NoError(t, b.Unlock())
	})
}

// Curator's holder watches its own node.
func TestAcceptance158AnEntryOfCuratorsIsWrittenTo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		conn := v.Server.Connect(t, 10*time.Second)
		theirs := zk.NewLock(conn, proving.LockPath, zk.WorldACL(zk.PermAll)) // its node has the form of Curator's
		require.NoError(t, theirs.Lock())
		c := contender(v, s)
		_, _, changed, err := conn.GetW(c.Node)
		require.NoError(t, err)
		next := proving.Begin(context.Background(), zksync.NewMutex(s, proving.LockPath))
		v.Settled(proving.LockPath, 2)
		v.Costs(2, func() { require.NoError(t, zksync.Revoke(t.Context(), s, c)) }, "the write, and the waiter's new watch")
		require.Equal(t, zk.EventNodeDataChanged, (<-changed).Type)
		require.Equal(t, "__REVOKE__", v.Data(c.Node))
		require.True(t, next.Pending(), "a write is no release")
		require.NoError(t, theirs.Unlock())
		require.NoError(t, v.Granted(next).Unlock())
		require.ErrorIs(t, zksync.Revoke(t.Context(), s, c), zksync.ErrStale)
	})
}

func TestAcceptance158WithEveryFaultTheHolderIsTold(t *testing.T) {
	for _, listens := range []bool{false, true} {
		proving.EveryFault(t, func(t *testing.T, v *proving.Env) func(string) {
			m, other := zksync.NewMutex(v.Session(), proving.LockPath), v.Session()
			l := v.Lock(m)
			c := contender(v, other)
			return func(name string) {
				if listens {
					l.Revoked()
					v.PassAWhile()
				}
				require.NoError(t, zksync.Revoke(context.Background(), other, c), name)
				v.Awaits(l.Revoked(), name)
				require.True(t, l.Valid(), name)
				require.NoError(t, l.Unlock(), name)
				v.Later()
				require.Empty(t, v.Children(proving.LockPath), name)
				after := v.Lock(m)
				after.Revoked()
				v.PassAWhile()
				require.False(t, proving.IsClosed(after.Revoked()), name)
				require.NoError(t, after.Unlock(), name)
				v.Later()
				require.Empty(t, v.Children(proving.LockPath), name)
			}
		})
	}
}

// A request that was made while the holder was away is told when it is back.
func TestAcceptance158ARequestDuringADisconnectIsToldAfterIt(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		s, other := v.Session(), v.Session()
		l := v.Lock(zksync.NewMutex(s, proving.LockPath))
		told := l.Revoked()
		v.Queued(proving.LockPath, 2)
		v.Quiet()
		c := contender(v, other)
		heal := v.CutOff(s)
		require.NoError(t, zksync.Revoke(t.Context(), other, c))
		require.False(t, proving.IsClosed(told))
		heal()
		v.Awaits(told, "the holder to be told")
		require.NoError(t, l.Unlock())
		v.Left(proving.LockPath, 0, "released")
	})
}

func TestAcceptance158AfterTheEndOfTheHoldNobodyListens(t *testing.T) {
	proving.EachAlone(t, func(t *testing.T, v *proving.Env) {
		l := v.Lock(zksync.NewMutex(proving.Calm(v), proving.LockPath))
		require.NoError(t, l.Unlock())
		v.Costs(0, func() { require.False(t, proving.IsClosed(l.Revoked())) })
	})
}
