package zksync_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// named is a connect string of n servers. Whichever is dialled is srv.
func named(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("zk%d:2181", i+1))
	}
	return strings.Join(list, ",")
}

func TestServersThatTakeLongForANewSessionAreReached(t *testing.T) {
	for name, c := range map[string]struct {
		servers       int
		timeout, slow time.Duration
		sessions      int // that are asked for
	}{
		"3 servers, 2s":          {3, 10 * time.Second, 2 * time.Second, 4},
		"10 servers, 0.6s":       {10, 10 * time.Second, 600 * time.Millisecond, 11},
		"1 server, 0.66 T":       {1, 10 * time.Second, 6600 * time.Millisecond, 2},
		"3 servers, 0.33 of 40s": {3, 40 * time.Second, 13200 * time.Millisecond, 7},
		"1 server, 6s of 60s":    {1, time.Minute, 6 * time.Second, 2},
		"a timeout of 400ms":     {2, 400 * time.Millisecond, 300 * time.Millisecond, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithTimeoutLimits(time.Millisecond, time.Hour))
				srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op == zktest.Connect && q.Session == 0 {
						return zktest.Verdict{Delay: c.slow}
					}
					return zktest.Verdict{}
				})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				s, err := zksync.Connect(ctx, named(c.servers), zksync.WithTimeout(c.timeout), zksync.WithDialer(srv.DialContext))
				require.NoError(t, err)
				require.Equal(t, c.sessions, srv.RequestsBy(zktest.Connect))
				require.NoError(t, s.Close())
				time.Sleep(time.Minute) // until the sessions that nobody has heard of have expired
			})
		})
	}
}

// Each step of a handshake is an answer that comes in time: the dial, the session, the credential.
func TestASessionIsHadOverALinkWhoseRoundTripIsAThirdOfTheTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{time.Second, 10 * time.Second, 40 * time.Second} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithTimeoutLimits(time.Millisecond, time.Hour), zktest.WithLeftovers())
				trip := time.Duration(bound * float64(timeout))
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					select {
					case <-time.After(trip):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					return srv.DialContext(ctx, network, address)
				}
				srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict { return zktest.Verdict{Delay: trip} })
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				s, err := zksync.Connect(ctx, named(3), zksync.WithTimeout(timeout), zksync.WithDialer(dial),
					zksync.WithAuth("digest", []byte("u:p")))
				require.NoError(t, err)
				require.NoError(t, s.Close())
				time.Sleep(2 * timeout)
			})
		})
	}
}

// One of three servers takes connections, and is silent. Servers grant a shorter timeout than was asked for.
func TestALeaseOutlivesADarkServerWhateverTimeoutWasAskedFor(t *testing.T) {
	for _, asked := range []time.Duration{4 * time.Second, time.Minute} {
		t.Run(asked.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t, zktest.WithTimeoutLimits(time.Second, 4*time.Second))
				dark := func(ctx context.Context, network, address string) (net.Conn, error) {
					if strings.HasPrefix(address, "zk1:") {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return srv.DialContext(ctx, network, address)
				}
				s, err := zksync.Connect(t.Context(), named(3), zksync.WithTimeout(asked), zksync.WithDialer(dark))
				require.NoError(t, err)
				defer s.Close()
				require.Equal(t, 4*time.Second, s.Timeout())
				l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
				require.NoError(t, err)
				for range 24 {
					time.Sleep(5 * time.Second)
					srv.Disconnect(s.ID())
				}
				time.Sleep(5 * time.Second)
				require.NoError(t, l.Err())
				require.NoError(t, l.Unlock())
			})
		})
	}
}

// Two of three servers are slow, and one takes connections and is silent.
func TestASessionSurvivesACutOfASlowLinkBesideADarkServer(t *testing.T) {
	for dark, slow := range map[string]time.Duration{"none": 2 * time.Second, "zk1:2181": 1700 * time.Millisecond} {
		t.Run(dark, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				quick := srv.InterceptFunc(func(*zktest.Request) zktest.Verdict { return zktest.Verdict{Delay: slow} })
				s, err := zksync.Connect(t.Context(), named(3), zksync.WithDialer(
					func(ctx context.Context, network, address string) (net.Conn, error) {
						if address == dark {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return srv.DialContext(ctx, network, address)
					}))
				require.NoError(t, err)
				defer s.Close()
				id := s.ID()
				for range 20 {
					time.Sleep(15 * time.Second)
					srv.Disconnect(id)
				}
				time.Sleep(15 * time.Second)
				require.Equal(t, zksync.Connected, s.State())
				require.Equal(t, id, s.ID())
				quick()
			})
		})
	}
}
