package barrier_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A monitor that is told another number than those who work must not make the object theirs.
func TestAQuestionMakesNoMeetingPoint(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ctx := context.Background()
		b, right := zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, 5), zkbarrier.NewBarrier(v.Session(), proving.BarrierPath, 1)
		ask := func(b *zkbarrier.Barrier) (int, error) {
			_, missing, err := b.Attendance(ctx)
			if err != nil {
				require.Nil(t, missing)
				return -1, err
			}
			waiting, err := b.Waiting(ctx)
			require.Zero(t, waiting)
			if err != nil {
				return -1, err
			}
			broken, err := b.Broken(ctx)
			require.False(t, broken)
			return len(missing), err
		}
		missing, err := ask(b)
		require.NoError(t, err)
		require.Equal(t, 5, missing)
		l, one := zklatch.New(v.Session(), proving.LatchPath, 5), zklatch.New(v.Session(), proving.LatchPath, 1)
		v.Remaining(l, 5)
		v.NothingLeft(proving.BarrierPath)
		v.NothingLeft(proving.LatchPath)

		_, err = right.Await(ctx)
		require.NoError(t, err)
		require.NoError(t, one.CountDown(ctx))
		_, err = ask(b)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = b.Waiting(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = b.Broken(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		_, err = l.Count(ctx)
		require.ErrorIs(t, err, zksync.ErrMisuse)
		missing, err = ask(right)
		require.NoError(t, err)
		require.Equal(t, 1, missing)
		v.Remaining(one, 0)
	})
}

func TestAnAttendanceThatFailsTellsOfNobody(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		b := zkbarrier.NewBarrier(s, proving.BarrierPath, 3)
		p := await(context.Background(), b)
		gathered(v, b, 1)
		rule := v.Server.Intercept(zktest.On(zktest.GetData, proving.BarrierPath+"/parties-0/**").Error(zktest.CodeNoAuth))
		arrived, missing, err := b.Attendance(context.Background())
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.Empty(t, arrived)
		require.Empty(t, missing)
		rule.Remove()
		leave(v, p, await(context.Background(), b), await(context.Background(), b))
	})
}
