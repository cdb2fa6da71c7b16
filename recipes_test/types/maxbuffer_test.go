package types_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// bigWrites are calls that write v.
var bigWrites = map[string]func(ctx context.Context, s *zksync.Session, path, v string) error{
	"value": func(ctx context.Context, s *zksync.Session, p, v string) error {
		return zkatomic.NewValue[string](s, p).Store(ctx, v)
	},
	"map": func(ctx context.Context, s *zksync.Session, p, v string) error {
		return zkmap.New[string, string](s, p).Store(ctx, "k", v)
	},
	"queue": func(ctx context.Context, s *zksync.Session, p, v string) error {
		return zkqueue.New[string](s, p).Put(ctx, v)
	},
	"election": func(ctx context.Context, s *zksync.Session, p, v string) error {
		l, err := zkelection.New(s, p, zkelection.Candidate{Data: []byte(v)}).Campaign(ctx)
		if err == nil {
			err = l.Unlock()
		}
		return err
	},
	"kept node": func(ctx context.Context, s *zksync.Session, p, v string) error {
		k := zkwatch.Keep(s, p+"/kept", []byte("small"))
		defer k.Close()
		return k.SetData(ctx, []byte(v))
	},
}

func TestARequestThatTheServersNeverTakeIsNotSentAgainAndAgain(t *testing.T) {
	for name, write := range bigWrites {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithMaxBuffer(100_000))
				s := srv.Session(t)
				lease, err := zksync.NewMutex(s, "/held").LockContext(t.Context())
				require.NoError(t, err)
				before := srv.TotalConnections()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				err = write(ctx, s, "/it", strings.Repeat("x", 200_000))
				require.ErrorIs(t, err, zksync.ErrMisuse)
				require.Regexp(t, `a request of 2\d{5} bytes has cut the connection 3 times`, err.Error())
				require.ErrorContains(t, err, "jute.maxbuffer")
				require.Less(t, time.Since(start), time.Second)
				require.Equal(t, 3, srv.TotalConnections()-before)
				require.ErrorIs(t, write(ctx, s, "/it", strings.Repeat("x", 300_000)), zksync.ErrMisuse)
				require.Equal(t, 3, srv.TotalConnections()-before, "nor any that is longer")
				require.NoError(t, write(ctx, s, "/other", strings.Repeat("x", 60_000)), "what they take is sent")
				require.NoError(t, lease.Err())
				require.NoError(t, lease.Unlock())
			})
		})
	}
}

func TestALongRequestThatIsCutBySomethingElseIsSentUntilItArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		v := zkatomic.NewValue[string](s, "/v")
		require.NoError(t, v.Store(t.Context(), strings.Repeat("x", 200_000)), "servers that take such requests")
		srv.Intercept(zktest.On(zktest.SetData, "/v/**").Times(10).LoseReply())
		require.NoError(t, v.Store(t.Context(), strings.Repeat("y", 200_000)))
	})
}
