package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zktest"
)

// Another program has made nodes below the first elements, so the servers refuse to remove these. Whoever stands in line gets the one
// behind them.
func TestElementsThatCannotBeRemovedDoNotBlockTheLine(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		a, b := zkqueue.New[int](v.Session(), path), zkqueue.New[int](v.Session(), path)
		waits, _ := taking(t.Context(), a) // makes the queue
		v.Quiet()
		put(t, b, 0)
		v.Passes(waits)
		put(t, b, 1, 2, 3)
		for _, name := range v.Children(path + "/zkqueue/elements") {
			v.Put(path+"/zkqueue/elements/"+name+"/x", "")
		}
		waits, got := taking(t.Context(), a)
		v.Quiet()
		put(t, b, 4)
		v.Passes(waits)
		require.Equal(t, 4, *got)
	})
}

// The answer to a claim is lost, and another program removes the writer's node before the request is repeated: so its outcome is
// unknown, and the session lives. The claim does not stay, held by nobody.
func TestAClaimOfUnknownOutcomeIsDelivered(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		q := zkqueue.New[int](s, path)
		put(t, q, 1, 2)
		v.Server.Intercept(zktest.On(zktest.Multi, path+"/zkqueue/claims/*").Of(s.ID()).LoseReply().Nth(1))
		go func() {
			for len(v.Server.Children(path+"/zkqueue/claims")) == 0 {
				time.Sleep(time.Microsecond)
			}
			dir := path + "/zkqueue/writers"
			dir += "/" + v.Data(dir)
			for _, name := range v.Server.Children(dir) {
				v.Server.Delete(dir + "/" + name)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for n := 1; n <= 2; n++ {
			d, err := q.Receive(ctx)
			require.NoError(t, err)
			require.Equal(t, n, d.Value)
			require.Equal(t, 1, d.Attempt)
			require.NoError(t, d.Ack(ctx))
		}
		require.Empty(t, v.Server.Children(path+"/zkqueue/claims"))
	})
}
