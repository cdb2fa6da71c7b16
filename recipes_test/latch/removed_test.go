package latch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// As in j.u.c., only events open a latch.
func TestALatchThatIsRemovedByHandDoesNotOpen(t *testing.T) {
	for name, remove := range map[string]func(v *proving.Env){
		"the node that says that it is closed": func(v *proving.Env) { v.Remove(proving.LatchPath + "/closed-of-3") },
		"all of it": func(v *proving.Env) {
			v.Remove(proving.LatchPath + "/closed-of-3")
			for _, count := range v.Children(proving.LatchPath + "/counts") {
				v.Remove(proving.LatchPath + "/counts/" + count)
			}
			v.Remove(proving.LatchPath + "/counts")
			v.Remove(proving.LatchPath)
		},
		"a node after the other": func(v *proving.Env) {
			v.Remove(proving.LatchPath + "/closed-of-3")
			time.Sleep(20 * time.Millisecond)
			for _, count := range v.Children(proving.LatchPath + "/counts") {
				v.Remove(proving.LatchPath + "/counts/" + count)
			}
			v.Remove(proving.LatchPath + "/counts")
			v.Remove(proving.LatchPath)
		},
	} {
		for kind, opts := range map[string][]zksync.Option{"": nil, ", ephemeral": {zklatch.WithEphemeral()}} {
			t.Run(name+kind, func(t *testing.T) {
				proving.Each(t, func(t *testing.T, v *proving.Env) { removed(t, v, latches(v, 3, 3, opts...), remove) })
			})
		}
	}
}

func removed(t *testing.T, v *proving.Env, ls []*zklatch.Latch, remove func(v *proving.Env)) {
	w, done := proving.Waits(context.Background(), ls[0].Wait), ls[2].Done()
	require.NoError(t, ls[1].CountDown(context.Background()))
	v.Quiet()
	remove(v)
	require.ErrorIs(t, v.Failed(w), zksync.ErrBroken)
	v.Quiet()
	require.False(t, proving.IsClosed(done))
	_, err := ls[0].Count(context.Background())
	if v.Exists(proving.LatchPath) {
		require.ErrorIs(t, err, zksync.ErrBroken)
		require.ErrorIs(t, ls[1].CountDown(context.Background()), zksync.ErrBroken)
		return
	}
	v.Remaining(ls[0], 3)
	for range 3 {
		require.False(t, proving.IsClosed(done))
		require.NoError(t, ls[1].CountDown(context.Background()))
	}
	require.NoError(t, ls[0].Wait(context.Background()), "the next one")
}

// The events are gone with the node in which they were.
func TestACountAtALatchWhoseCountsWereRemovedSaysSo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := latches(v, 1, 2)[0]
		v.Put(proving.LatchPath, `{"total":2}`)
		v.Put(proving.LatchPath+"/closed-of-2", "")
		require.ErrorIs(t, l.CountDown(context.Background()), zksync.ErrBroken)
		require.False(t, v.Exists(proving.LatchPath+"/counts"))
	})
}

// Somebody writes to the base node externally; that opens nothing, and is no reason not to open.
func TestALatchOpensAfterItsBaseNodeWasWrittenByHand(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ls := latches(v, 2, 1)
		w := proving.Waits(context.Background(), ls[0].Wait)
		v.Quiet()
		v.Server.Set(proving.LatchPath, []byte(`{"total":1}`))
		v.PassAWhile()
		require.True(t, w.Pending())
		require.NoError(t, ls[1].CountDown(context.Background()))
		v.Passes(w)
	})
}

// What opens a latch lies in the queue of a server, and is applied when there is another latch of that name.
func TestAnOpeningThatLingersDoesNotOpenTheNextLatch(t *testing.T) {
	for _, ephemeral := range []bool{false, true} {
		t.Run(fmt.Sprint(ephemeral), func(t *testing.T) {
			proving.AmongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				ctx := context.Background()
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				var opts []zksync.Option
				if ephemeral {
					opts = append(opts, zklatch.WithEphemeral())
				}
				l, other := zklatch.New(s, proving.LatchPath, 1, opts...), zklatch.New(e.SessionAt(t, 2), proving.LatchPath, 1, opts...)
				late := e.Intercept(zktest.On(zktest.Delete, proving.LatchPath+"/closed-of-1").Of(s.ID()).Nth(1).Hold().Queued())
				counting := proving.Waits(ctx, l.CountDown)
				require.NoError(t, late.WaitHeld(ctx))
				e.Disconnect(s.ID())
				<-counting.Done
				require.NoError(t, counting.Err)
				e.Server(0).DeleteAll(proving.LatchPath)
				w := proving.Waits(ctx, other.Wait)
				time.Sleep(time.Second)
				for range 2 {
					e.Disconnect(s.ID())
					time.Sleep(100 * time.Millisecond)
				}
				require.Equal(t, 0, e.At(s.ID()))
				late.Release()
				time.Sleep(time.Minute)
				require.True(t, w.Pending(), "nobody has counted")
				require.NoError(t, zklatch.New(s, proving.LatchPath, 1, opts...).CountDown(ctx))
				<-w.Done
				require.NoError(t, w.Err)
			})
		})
	}
}

// It deletes the node for which all wait, without a change of it before.
func TestALatchThatAProcessOfAnOlderVersionOpensIsOpen(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		l := latches(v, 1, 3)[0]
		w := proving.Waits(context.Background(), l.Wait)
		v.Quiet()
		v.Server.Set(proving.LatchPath, []byte(`{"total":3,"open":true}`))
		v.Remove(proving.LatchPath + "/closed-of-3")
		<-w.Done
		require.NoError(t, w.Err)
	})
}
