package recipes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// As in j.u.c., only events open a latch.
func TestALatchThatIsRemovedByHandDoesNotOpen(t *testing.T) {
	for name, remove := range map[string]func(v *env){
		"the node that says that it is closed": func(v *env) { v.remove(latchPath + "/closed-of-3") },
		"all of it": func(v *env) {
			v.remove(latchPath + "/closed-of-3")
			for _, count := range v.children(latchPath + "/counts") {
				v.remove(latchPath + "/counts/" + count)
			}
			v.remove(latchPath + "/counts")
			v.remove(latchPath)
		},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, v *env) {
				ls := v.latches(3, 3)
				w, done := waits(context.Background(), ls[0].Wait), ls[2].Done()
				require.NoError(t, ls[1].CountDown(context.Background()))
				v.quiet()
				remove(v)
				require.ErrorIs(t, v.failed(w), zksync.ErrBroken)
				v.quiet()
				require.False(t, isClosed(done))
				_, err := ls[0].Count(context.Background())
				if v.exists(latchPath) {
					require.ErrorIs(t, err, zksync.ErrBroken)
					require.ErrorIs(t, ls[1].CountDown(context.Background()), zksync.ErrBroken)
					return
				}
				v.remaining(ls[0], 3)
				for range 3 {
					require.False(t, isClosed(done))
					require.NoError(t, ls[1].CountDown(context.Background()))
				}
				require.NoError(t, ls[0].Wait(context.Background()), "the next one")
			})
		})
	}
}

// Somebody writes to the base node by hand; that opens nothing, and is no reason not to open.
func TestALatchOpensAfterItsBaseNodeWasWrittenByHand(t *testing.T) {
	inProcess(t, func(t *testing.T, v *env) {
		ls := v.latches(2, 1)
		w := waits(context.Background(), ls[0].Wait)
		v.quiet()
		v.srv.Set(latchPath, []byte(`{"total":1}`))
		v.aWhile()
		require.True(t, w.pending())
		require.NoError(t, ls[1].CountDown(context.Background()))
		v.passes(w)
	})
}

// What opens a latch lies in the queue of a server, and is applied when there is another latch of that name.
func TestAnOpeningThatLingersDoesNotOpenTheNextLatch(t *testing.T) {
	for _, ephemeral := range []bool{false, true} {
		t.Run(fmt.Sprint(ephemeral), func(t *testing.T) {
			amongMembers(t, 3, time.Second, func(t *testing.T, e *zktest.Ensemble) {
				ctx := context.Background()
				s := e.SessionAt(t, 0, zksync.WithTimeout(10*time.Second))
				var opts []zksync.Option
				if ephemeral {
					opts = append(opts, zklatch.Ephemeral())
				}
				l, other := zklatch.New(s, latchPath, 1, opts...), zklatch.New(e.SessionAt(t, 2), latchPath, 1, opts...)
				late := e.Intercept(zktest.On(zktest.Delete, latchPath+"/closed-of-1").Of(s.ID()).Nth(1).Hold().Queued())
				counting := waits(ctx, l.CountDown)
				require.NoError(t, late.WaitHeld(ctx))
				e.Disconnect(s.ID())
				<-counting.done
				require.NoError(t, counting.err)
				e.Server(0).DeleteAll(latchPath)
				w := waits(ctx, other.Wait)
				time.Sleep(time.Second)
				for range 2 {
					e.Disconnect(s.ID())
					time.Sleep(100 * time.Millisecond)
				}
				require.Equal(t, 0, e.At(s.ID()))
				late.Release()
				time.Sleep(time.Minute)
				require.True(t, w.pending(), "nobody has counted")
				require.NoError(t, zklatch.New(s, latchPath, 1, opts...).CountDown(ctx))
				<-w.done
				require.NoError(t, w.err)
			})
		})
	}
}
