package mutex_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// removes has the session s remove an entry, and say why if that is not empty.
func removes(v *proving.Env, s *zksync.Session, entry, why string) {
	v.T.Helper()
	en, ok := queue.ParseEntry(path.Base(entry))
	require.True(v.T, ok)
	at := session.NewAccess[session.Option]("zksync", (*session.Session)(s), path.Dir(entry), nil)
	require.NoError(v.T, at.Run(v.T.Context(), "remove", func(ctx context.Context, e *zkconn.Epoch) error {
		var what *node.Content
		if why != "" {
			c := at.Content(node.Content{Reason: why})
			what = &c
		}
		_, err := at.Queue("", en.Kind).Remove(ctx, e, en, what)
		return err
	}))
}

const removed = `^zksync: lease lost: removed by \S+ pid \d+ \(alice\): it hangs$`

func TestAReasonChangesNotWhenALeaseEnds(t *testing.T) {
	for _, why := range []string{"", "it hangs"} {
		for _, listens := range []bool{false, true} {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, ops := v.Session(), v.Session(zksync.WithName("alice"))
				l := v.Lock(zksync.NewMutex(s, proving.LockPath))
				ctx := l.Context()
				if listens {
					l.Revoked()
				}
				v.Quiet()
				v.Server.Delay(s.ID(), 30*time.Millisecond, 20*time.Millisecond)
				start := time.Now()
				removes(v, ops, l.Node(), why)
				v.Awaits(l.Done(), "the end")
				v.Took(start, 20*time.Millisecond, "the event")
				require.Same(t, zksync.ErrLost, l.Err())
				require.Same(t, zksync.ErrLost, context.Cause(ctx))
				time.Sleep(50*time.Millisecond - 1)
				synctest.Wait()
				require.Same(t, zksync.ErrLost, l.Err(), "the answer to the read has not come")
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				require.ErrorIs(t, l.Err(), zksync.ErrLost)
				if why == "" {
					require.Same(t, zksync.ErrLost, l.Err())
				} else {
					require.Regexp(t, removed, l.Err().Error())
					require.ErrorContains(t, l.Unlock(), "lease lost: removed by")
				}
				require.Same(t, zksync.ErrLost, context.Cause(ctx), "as at the end")
				v.Later()
				require.Empty(t, v.Children(proving.LockPath))
			})
		}
	}
}

func TestEveryHolderLearnsWhyItsNodeWasRemoved(t *testing.T) {
	for name, get := range holders {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				l, ops := get(v, v.Session()), v.Session(zksync.WithName("alice"))
				l.Done()
				v.Quiet()
				removes(v, ops, l.Node(), "it hangs")
				v.Quiet()
				require.Regexp(t, removed, l.Err().Error())
				require.Zero(t, asked(v))
			})
		})
	}
}

// orders are the orders in which the one that is removed hears of it, and the one that removes ends. told says whether the first hears why.
var orders = map[string]struct {
	listens, told bool
	happen        func(v *proving.Env, s, ops *zksync.Session, remove func())
}{
	"one after the other": {told: true, happen: func(_ *proving.Env, _, _ *zksync.Session, remove func()) { remove() }},
	"it listens":          {listens: true, told: true, happen: func(_ *proving.Env, _, _ *zksync.Session, remove func()) { remove() }},
	"without a connection": {told: true, happen: func(v *proving.Env, s, _ *zksync.Session, remove func()) {
		heal := v.Server.Partition(s.ID())
		remove()
		time.Sleep(time.Second)
		heal()
	}},
	"listens without a connection, and the other is killed": {listens: true, told: true, happen: func(v *proving.Env, s, ops *zksync.Session, remove func()) {
		heal := v.Server.Partition(s.ID())
		remove()
		v.Expire(ops)
		heal()
	}},
	"without a connection, and the other is killed": {happen: func(v *proving.Env, s, ops *zksync.Session, remove func()) {
		heal := v.Server.Partition(s.ID())
		remove()
		v.Expire(ops)
		heal()
	}},
	"dead": {happen: func(v *proving.Env, s, ops *zksync.Session, remove func()) {
		v.Server.Partition(s.ID())
		remove()
		time.Sleep(time.Second)
		require.NoError(v.T, ops.Close())
	}},
	"dead while it listens": {listens: true, happen: func(v *proving.Env, s, ops *zksync.Session, remove func()) {
		v.Server.Partition(s.ID())
		remove()
		require.NoError(v.T, ops.Close())
	}},
	"its session ends": {listens: true, happen: func(v *proving.Env, s, _ *zksync.Session, remove func()) {
		heal := v.Server.Partition(s.ID())
		remove()
		v.Expire(s)
		heal()
	}},
}

func TestNoReasonIsLeftAndNoLaterHoldHearsIt(t *testing.T) {
	for name, o := range orders {
		t.Run(name, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				s, ops := v.Session(), v.Session(zksync.WithName("alice"))
				l := v.Lock(zksync.NewMutex(s, proving.LockPath))
				l.Done()
				if o.listens {
					listens(v, l)
				}
				v.Quiet()
				o.happen(v, s, ops, func() { removes(v, ops, l.Node(), "it hangs") })
				next := v.Lock(zksync.NewMutex(v.Session(), proving.LockPath))
				time.Sleep(time.Minute)
				v.Awaits(l.Done(), "the end")
				require.ErrorIs(t, l.Err(), zksync.ErrLost)
				require.Equal(t, o.told, strings.Contains(l.Err().Error(), "(alice): it hangs"), l.Err())
				require.Zero(t, asked(v))
				require.NoError(t, next.Err())
				require.False(t, proving.IsClosed(next.Revoked()))
				require.NoError(t, next.Unlock())
				v.Later()
				require.Empty(t, v.Children(proving.LockPath))
			})
		})
	}
}

// It costs one read, and with a reason one delete more, for the one that is removed; two transactions, or one if it listens, for the other.
func TestWhatAReasonCosts(t *testing.T) {
	for _, c := range []struct {
		why     string
		listens bool
		cost    int
	}{{"", false, 1 + 2}, {"it hangs", false, 2 + 3}, {"it hangs", true, 1 + 3}} {
		proving.InProcess(t, func(t *testing.T, v *proving.Env) {
			s, ops := proving.Calm(v), proving.Calm(v)
			require.NoError(t, v.Lock(zksync.NewMutex(ops, "/other")).Unlock())
			l := v.Lock(zksync.NewMutex(s, proving.LockPath))
			l.Done()
			if c.listens {
				listens(v, l)
			}
			v.Quiet()
			v.Costs(c.cost, func() {
				removes(v, ops, l.Node(), c.why)
				v.Awaits(l.Done(), "the end")
				v.Quiet()
			}, c)
		})
	}
}

func TestAWaiterThatIsRemovedQueuesAgainAtTheTail(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3)
		holder := v.Lock(ms[0])
		first, place := waiting(v, context.Background(), ms[1])
		second, _ := waiting(v, context.Background(), ms[2])
		removes(v, v.Session(), place, "")
		v.Quiet()
		v.Settled(proving.LockPath, 3)
		require.NoError(t, holder.Unlock())
		require.NoError(t, v.Granted(second).Unlock())
		require.NoError(t, v.Granted(first).Unlock())
	})
}

func TestTheLogSaysWhyALeaseWasLost(t *testing.T) {
	type lose func(v *proving.Env, s *zksync.Session, l *zksync.Lease)
	for reason, c := range map[string]struct {
		lose
		says string
	}{
		"session": {func(v *proving.Env, s *zksync.Session, l *zksync.Lease) { v.Server.Expire(s.ID()) },
			`\S+ says that the session has expired`},
		"removed": {func(v *proving.Env, s *zksync.Session, l *zksync.Lease) { removes(v, v.Session(), l.Node(), "") },
			`another program removed its node, and did not say why`},
		"revoked": {func(v *proving.Env, s *zksync.Session, l *zksync.Lease) {
			removes(v, v.Session(zksync.WithName("alice")), l.Node(), "it hangs")
		}, `removed by \S+ pid \d+ \(alice\): it hangs`},
		"max-hold": {func(v *proving.Env, s *zksync.Session, l *zksync.Lease) { time.Sleep(time.Minute) },
			`lease held longer than its maximum`},
	} {
		t.Run(reason, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				var log proving.Log
				s := v.Session(log.Option())
				id := s.ID()
				l := v.Lock(zksync.NewMutex(s, proving.LockPath, zksync.WithMaxHold(time.Minute)))
				l.Done()
				v.Quiet()
				time.Sleep(10 * time.Second)
				c.lose(v, s, l)
				v.Quiet()
				require.NoError(t, s.Close())
				var lost []string
				for line := range strings.Lines(log.String()) {
					if strings.Contains(line, "level=WARN") {
						lost = append(lost, line)
					}
				}
				require.Len(t, lost, 1)
				require.Regexp(t, fmt.Sprintf(`level=WARN msg="lease lost" path=%s token=%v held=\S+s reason=%s session=0x%x error="%s"\n$`,
					proving.LockPath, l.Token(), reason, id, c.says), lost[0])
			})
		})
	}
}
