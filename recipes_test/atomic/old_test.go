package atomic_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// An object keeps the newest value that it has seen. No call fails because of that value if it is old by then.
func TestNoCallFailsBecauseOfAnOldValue(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		x, other := zkatomic.NewValue[int](v.Session(), path), zkatomic.NewValue[int](v.Session(), path)
		errLow := errors.New("too low")
		atLeast50 := func(old int, _ bool) (int, error) {
			if old < 50 {
				return 0, errLow
			}
			return old + 1, nil
		}
		require.NoError(t, x.Store(ctx, 0))
		_, err := x.Update(ctx, atLeast50)
		require.ErrorIs(t, err, errLow)
		require.NoError(t, other.Store(ctx, 100))
		got, err := x.Update(ctx, atLeast50)
		require.NoError(t, err)
		require.Equal(t, 101, got)
	})
}

func TestWhatIsNoNumberIsRefusedUntilItIsRepaired(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		x := zkatomic.NewInt64(v.Session(), path)
		require.NoError(t, x.Store(ctx, 1))
		node := path + "/zkatomic.Int64/value"
		v.Server.Set(node, []byte("x"))
		for range 2 {
			_, err := x.Add(ctx, 1)
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, node)
		}
		require.NoError(t, x.Store(ctx, 5))
		n, err := x.Add(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, int64(6), n)
	})
}

func TestASequenceRefusesANegativeNumber(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx := t.Context()
		for _, opts := range [][]zksync.Option{nil, {zkatomic.WithBlock(100)}} {
			q := zkatomic.NewSequence(v.Session(), path, opts...)
			_, err := q.Next(ctx)
			require.NoError(t, err)
			node := path + "/zkatomic.Sequence/value"
			before := []byte(v.Data(node))
			v.Server.Set(node, []byte("-5"))
			for err = nil; err == nil; _, err = q.Next(ctx) { // what is left of a block was reserved before
			}
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, node)
			require.Equal(t, "-5", v.Data(node))
			v.Server.Set(node, before)
		}
	})
}

// What is read after a refusal may be older than a call that came meanwhile, on a server that lags behind.
func TestACallThatComesBeforeARefusalIsNotToldWhatWasBeforeIt(t *testing.T) {
	proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
		ctx := t.Context()
		writer := zkatomic.NewInt64(e.SessionAt(t, 2), path)
		s := e.SessionAt(t, 0)
		late := zkatomic.NewInt64(s, path)
		require.NoError(t, late.Store(ctx, 1))
		require.NoError(t, writer.Store(ctx, 2))
		in := e.Server(0).Intercept(zktest.On(zktest.Multi, "**").Of(s.ID()).Times(1).DelayReply(50 * time.Millisecond))
		compare := func(old, new int64) (*proving.Attempt, *bool) {
			var swapped bool
			return proving.Waits(ctx, func(ctx context.Context) (err error) {
				swapped, err = late.CompareAndSwap(ctx, old, new)
				return err
			}), &swapped
		}
		first, gone := compare(1, 5)
		synctest.Wait()
		require.Equal(t, 1, in.Fired(), "the leader has refused it")
		catchUp := e.Lag(0)
		require.NoError(t, writer.Store(ctx, 3))
		second, swapped := compare(3, 4)
		time.Sleep(100 * time.Millisecond)
		catchUp()
		<-first.Done
		<-second.Done
		require.NoError(t, first.Err)
		require.NoError(t, second.Err)
		require.False(t, *gone)
		require.True(t, *swapped, "3 was there before the call")
	})
}

// A caller that gives up ends its own call only.
func TestACallerThatGivesUpEndsNoOther(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		x := zkatomic.NewInt64(s, path)
		require.NoError(t, x.Store(t.Context(), 1))
		for wait := range time.Duration(4) {
			v.Disconnect(s)
			ctx, cancel := context.WithCancel(t.Context())
			first := proving.Waits(ctx, func(ctx context.Context) error { _, err := x.Add(ctx, 1); return err })
			if wait > 0 {
				v.Quiet()
			}
			others := proving.Waits(t.Context(), func(ctx context.Context) error { _, err := x.Add(ctx, 1); return err })
			if wait > 1 {
				v.Quiet()
			}
			cancel()
			if wait > 2 {
				v.Quiet()
			}
			later := proving.Waits(t.Context(), func(ctx context.Context) error { _, err := x.Add(ctx, 1); return err })
			<-first.Done
			<-others.Done
			<-later.Done
			require.NoError(t, others.Err)
			require.NoError(t, later.Err)
		}
	})
}

func TestSlotsWithoutTheirDirectoryAreBroken(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		x := zkatomic.NewSlots(v.Session(), path, 2)
		_, l, err := x.Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		v.Server.DeleteAll(path + "/zkatomic.Slots/taken")
		_, _, err = x.Acquire(t.Context())
		require.ErrorIs(t, err, zksync.ErrBroken)
	})
}

func TestANumberThatLostANodeIsBroken(t *testing.T) {
	for _, lost := range []string{"/value", "/writers"} {
		t.Run(lost, func(t *testing.T) {
			proving.InProcess(t, func(t *testing.T, v *proving.Env) {
				x, other := zkatomic.NewInt64(v.Session(), path), zkatomic.NewInt64(v.Session(), path)
				_, err := x.Add(t.Context(), 1)
				require.NoError(t, err)
				v.Server.DeleteAll(int64s + lost)
				for _, x := range []*zkatomic.Int64{x, other} {
					_, err = x.Add(t.Context(), 1)
					require.ErrorIs(t, err, zksync.ErrBroken)
				}
				if lost == "/value" {
					_, err = other.Load(t.Context())
					require.ErrorIs(t, err, zksync.ErrBroken)
				}
			})
		})
	}
}
