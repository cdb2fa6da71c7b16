//go:build unix

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestALookLastsAsLongAsAnswersCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		for i := range 100 {
			_, err := s.Conn().Create(fmt.Sprintf("/n%02d", i), []byte("x"), 0, zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		const limit = 3 * time.Second
		var looked atomic.Pointer[zkconn.Epoch]
		ctx, cancel := context.WithCancel(t.Context())
		silent := make(chan time.Time, 1)
		go untilSilent(ctx, limit, func() time.Time {
			if e := looked.Load(); e != nil {
				return e.Heard()
			}
			return time.Time{}
		}, func() { silent <- time.Now(); cancel() })

		slow := srv.Delay(s.ID(), 0, time.Second)
		begin := time.Now()
		v := new(tree.View)
		look := func(ctx context.Context, l *tree.Look) (err error) {
			looked.Store(l.Epoch)
			v, err = l.View(ctx, "/", true, true)
			return err
		}
		require.NoError(t, tree.Follow(ctx, s, 0, false, look))
		require.Greater(t, time.Since(begin), 3*limit)
		require.Len(t, v.Below, 101)
		slow()

		thaw := srv.Freeze()
		defer thaw()
		begin = time.Now()
		require.ErrorIs(t, tree.Follow(ctx, s, 0, false, look), context.Canceled)
		require.InDelta(t, limit, (<-silent).Sub(begin), float64(time.Second), "counted from the last answer")
	})
}

// The look begins a second before the end of --wait. On a busy machine it may begin late, and must not end late.
func TestALookAtTheHolderThatBeginsLateEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		defer srv.Freeze()()
		was := started
		defer func() { started = was }()
		started = time.Now().Add(-9950 * time.Millisecond)
		held, _ := (&app{}).whoHolds(s, lockOptions{path: "/a", wait: 10 * time.Second})
		begin := time.Now()
		require.Equal(t, ", and no server answers", <-held)
		require.Equal(t, 50*time.Millisecond+sightLimit, time.Since(begin))
	})
}
