package zkconn_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zktest"
)

// After a partition the old session may live on at the servers. Its nodes must not
// keep others out for longer than it takes to say so.
func TestASessionThatWasGivenUpIsEndedOnTheServersOnceTheyCanBeReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv, func(cfg *zkconn.Config) { cfg.LeaseFraction = 0.3 })
		make1(t, e, "/mine")
		heal := srv.Partition(e.ID())
		<-e.Over() // by our own clock: the server gives it three times as long
		heal()
		nextEpoch(t, c, e)
		time.Sleep(100 * time.Millisecond)
		zktest.CheckNoNode(t, srv, "/mine")
		require.Len(t, srv.Sessions(), 1)
	})
}

func TestAPredecessorsSessionIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		dead, err := srv.DialContext(context.Background(), "tcp", "")
		require.NoError(t, err)
		var id int64
		var passwd []byte
		first := zkconn.Open(zkconn.Config{
			Servers: []string{"a:1"}, Timeout: timeout, Dial: srv.DialContext,
			OnSession: func(i int64, p []byte) { id, passwd = i, p },
		})
		defer first.Close()
		e, err := first.Epoch(t.Context())
		require.NoError(t, err)
		make1(t, e, "/mine")
		_ = dead.Close()
		_, _ = open(t, srv, func(cfg *zkconn.Config) {
			cfg.Predecessors = []zkconn.Credentials{{ID: id, Passwd: passwd}}
		})
		time.Sleep(100 * time.Millisecond)
		zktest.CheckNoNode(t, srv, "/mine")
	})
}

// deadSession makes a session that nobody uses any more, and a node of it.
func deadSession(t *testing.T, srv *zktest.Server) zkconn.Credentials {
	t.Helper()
	var cred zkconn.Credentials
	c := zkconn.Open(zkconn.Config{
		Servers: []string{"a:1"}, Timeout: timeout,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if cred.ID != 0 {
				return nil, net.ErrClosed
			}
			return srv.DialContext(ctx, network, address)
		},
		OnSession: func(id int64, passwd []byte) { cred = zkconn.Credentials{ID: id, Passwd: passwd} },
	})
	e, err := c.Epoch(t.Context())
	require.NoError(t, err)
	make1(t, e, "/mine")
	srv.Disconnect(cred.ID)
	synctest.Wait()
	c.Close()
	zktest.CheckNode(t, srv, "/mine", nil)
	return cred
}

func TestASessionOfThePastIsEndedAlthoughNoAnswerComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		dead := deadSession(t, srv)
		heal := srv.DropReplies(dead.ID)
		defer heal()
		_, _ = open(t, srv, func(cfg *zkconn.Config) { cfg.Predecessors = []zkconn.Credentials{dead} })
		time.Sleep(100 * time.Millisecond)
		zktest.CheckNoNode(t, srv, "/mine")
	})
}

// Every attempt resumes the session, and so keeps it alive if it gets no further.
func TestAttemptsToEndASessionDoNotKeepItAliveForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		dead := deadSession(t, srv)
		srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.CloseSession && q.Session == dead.ID {
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		_, _ = open(t, srv, func(cfg *zkconn.Config) { cfg.Predecessors = []zkconn.Credentials{dead} })
		time.Sleep(4 * timeout)
		zktest.CheckNoNode(t, srv, "/mine")
	})
}

func TestAPredecessorThatCannotBeEndedDoesNotKeepTheOthersAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var dead []zkconn.Credentials
		for range 3 {
			_, e := open(t, srv, func(cfg *zkconn.Config) {
				first := true
				cfg.OnSession = func(id int64, passwd []byte) {
					if !first { // a session that ends makes its client open another
						return
					}
					first = false
					dead = append(dead, zkconn.Credentials{ID: id, Passwd: passwd})
				}
			})
			make1(t, e, fmt.Sprintf("/of0x%x", e.ID()))
		}
		srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if q.Op == zktest.Connect && q.Session == dead[2].ID {
				return zktest.Verdict{Fate: zktest.LoseRequest}
			}
			return zktest.Verdict{}
		})
		_, _ = open(t, srv, func(cfg *zkconn.Config) { cfg.Predecessors = dead })
		time.Sleep(time.Second)
		for _, d := range dead[:2] {
			zktest.CheckNoNode(t, srv, fmt.Sprintf("/of0x%x", d.ID))
		}
		zktest.CheckNode(t, srv, fmt.Sprintf("/of0x%x", dead[2].ID), nil)
	})
}

func TestAWrongPasswordEndsNobodysSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		_, e := open(t, srv)
		make1(t, e, "/mine")
		_, _ = open(t, srv, func(cfg *zkconn.Config) {
			cfg.Predecessors = []zkconn.Credentials{{ID: e.ID(), Passwd: make([]byte, 16)}}
		})
		time.Sleep(time.Second)
		zktest.CheckNode(t, srv, "/mine", nil)
		require.NoError(t, e.Cause())
	})
}

// One session after the other was lost, and could not be ended since.
func TestCloseEndsTheSessionsOfThePastThatItFindsLeft(t *testing.T) {
	for name, linked := range map[string]bool{"with a connection": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Run(t)
				var mu sync.Mutex
				ended := map[int64]bool{}
				c, e := open(t, srv, func(cfg *zkconn.Config) {
					cfg.LeaseFraction = 0.3
					cfg.Timeout = time.Minute
					cfg.OnEnded = func(id int64) {
						mu.Lock()
						defer mu.Unlock()
						ended[id] = true
					}
				})
				struck := srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
					if q.Op == zktest.Connect && q.Session != 0 {
						return zktest.Verdict{Fate: zktest.LoseRequest}
					}
					return zktest.Verdict{}
				})
				var lost []int64
				for range 2 {
					lost = append(lost, e.ID())
					allow := srv.Refuse()
					srv.Disconnect(e.ID())
					<-e.Over()
					allow()
					e = nextEpoch(t, c, e)
				}
				time.Sleep(time.Second)
				require.Empty(t, ended)
				require.Len(t, srv.Sessions(), 3)
				if !linked {
					allow := srv.Refuse()
					srv.Disconnect(e.ID())
					synctest.Wait()
					time.AfterFunc(time.Second, allow)
				}
				struck()
				began := time.Now()
				c.Close()
				require.LessOrEqual(t, time.Since(began), 2*time.Second)
				require.Empty(t, srv.Sessions())
				require.Equal(t, map[int64]bool{lost[0]: true, lost[1]: true, e.ID(): true}, ended)
			})
		})
	}
}

// The servers grant to another as soon as the old session is ended on them.
func TestALostSessionIsEndedOnTheServersOnlyWhenEverybodyHasBeenTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		c, e := open(t, srv)
		id := e.ID()
		defer srv.DropReplies(id)() // the servers still hear it, so it does not expire
		told := make(chan bool)
		e.OnOver(func(error) {
			time.Sleep(time.Second) // as if the machine had no time for this goroutine
			told <- slices.ContainsFunc(srv.Sessions(), func(s zktest.SessionInfo) bool { return s.ID == id })
		})
		require.True(t, <-told, "ended before the holder was told")
		nextEpoch(t, c, e)
		time.Sleep(time.Second)
		require.False(t, slices.ContainsFunc(srv.Sessions(), func(s zktest.SessionInfo) bool { return s.ID == id }))
	})
}

// Servers bound the connections of one host, and the processes that were killed together come back together.
func TestSessionsOfThePastAreEndedOverOneConnectionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		var mu sync.Mutex
		now, most, all := 0, 0, 0
		open(t, srv, func(c *zkconn.Config) {
			for i := range 16 {
				c.Predecessors = append(c.Predecessors, zkconn.Credentials{ID: int64(100 + i), Passwd: make([]byte, 16)})
			}
			c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				time.Sleep(time.Millisecond)
				conn, err := srv.DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				mu.Lock()
				defer mu.Unlock()
				now, all = now+1, all+1
				most = max(most, now)
				return &closing{conn, sync.OnceFunc(func() {
					mu.Lock()
					defer mu.Unlock()
					now--
				})}, nil
			}
		})
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 2, most, "with the one of the session")
		require.GreaterOrEqual(t, all, 17)
	})
}

// closing is a connection that tells of its end.
type closing struct {
	net.Conn
	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

// The limit of an attempt to end a session grows, as that of an attempt to connect does.
func TestSlowServersConfirmTheEndOfASessionOfThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		dead := deadSession(t, srv)
		quick := srv.InterceptFunc(func(*zktest.Request) zktest.Verdict { return zktest.Verdict{Delay: 1800 * time.Millisecond} })
		ended := make(chan int64, 1)
		open(t, srv, func(c *zkconn.Config) {
			c.Servers = []string{"a:1", "b:1"} // so that a first attempt has 1.5s
			c.Predecessors = []zkconn.Credentials{dead}
			c.OnEnded = func(id int64) { ended <- id }
		})
		select {
		case id := <-ended:
			require.Equal(t, dead.ID, id)
		case <-time.After(time.Minute):
			t.Fatal("not confirmed")
		}
		quick()
	})
}
