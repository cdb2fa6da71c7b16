package once_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// The one who runs has not heard yet that its lock is gone, and another one may be running by now.
func TestAResultIsNotKeptOnceTheLockIsGone(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		slow := v.Session()
		o := zkonce.New(slow, proving.OncePath)
		_, err := o.DoContext(context.Background(), func(ctx context.Context) ([]byte, error) {
			v.Server.Delay(slow.ID(), 0, 2*time.Second) // from here on it hears of everything late
			v.Remove(zksync.LeaseFrom(ctx).Node())
			require.NoError(t, ctx.Err())
			return []byte("late"), nil
		})
		require.ErrorIs(t, err, zksync.ErrLost)
		require.False(t, v.Exists(proving.OncePath+"/result"))
		value, err := onces(v, 1)[0].DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte("next"), nil })
		require.NoError(t, err)
		require.Equal(t, "next", string(value))
		v.Server.Delay(slow.ID(), 0, 0)
		value, err = o.DoContext(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, "next", string(value))
	})
}

// Whoever comes late to a result that somebody else has put there must not pass its own off as that.
func TestAResultOfSomebodyElseIsNotTakenForTheOwn(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		o := onces(v, 1)[0]
		_, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) {
			v.Put(proving.OncePath+"/result", `{"by":"somebody else","value":"dGhlaXJz"}`)
			return []byte("ours"), nil
		})
		require.ErrorIs(t, err, zksync.ErrLost)
		value, err := o.DoContext(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, "theirs", string(value))
	})
}

// The result is replaced after it was read and its watch was set, and before the answer comes: what was read is not watched.
func TestAResultThatChangesWhileItIsReadIsNotRememberedForEver(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		slow, other := zkonce.New(s, proving.OncePath), onces(v, 1)[0]
		run := func(text string) {
			value, err := other.DoContext(context.Background(), func(context.Context) ([]byte, error) { return []byte(text), nil })
			require.NoError(t, err)
			require.Equal(t, text, string(value))
		}
		run("1")
		v.Server.Intercept(zktest.On(zktest.GetData, proving.OncePath+"/result").Of(s.ID()).DelayReply(time.Second))
		read := proving.Waits(context.Background(), func(ctx context.Context) error {
			done, err := slow.IsDone(ctx)
			require.True(t, done)
			return err
		})
		v.Quiet()
		require.True(t, read.Pending())
		require.NoError(t, other.Reset(context.Background()))
		run("2")
		v.Passes(read)
		require.NoError(t, other.Reset(context.Background()))
		v.Quiet()
		done, err := slow.IsDone(context.Background())
		require.NoError(t, err)
		require.False(t, done, "it remembers what nobody watches")
	})
}
