package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestTheLockOfTheGoClientIsGrantedInOrder(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		holder := zk.NewLock(c.Conn, "/deep/path/to/lock", open)
		require.NoError(t, holder.LockWithData([]byte("holder")))
		granted := make(chan int, 3)
		for i := range cap(granted) {
			go func() {
				l := zk.NewLock(c.Conn, "/deep/path/to/lock", open)
				if l.Lock() == nil {
					granted <- i
					<-time.After(time.Second)
					_ = l.Unlock()
				}
			}()
			zktest.WaitChildren(t, srv, "/deep/path/to/lock", i+2)
		}
		require.True(t, pending(granted))
		begin := time.Now()
		require.NoError(t, holder.Unlock())
		for i := range cap(granted) {
			require.Equal(t, i, <-granted)
			require.Equal(t, time.Duration(i)*time.Second, time.Since(begin))
		}
		zktest.WaitChildren(t, srv, "/deep/path/to/lock", 0)
	})
}

func TestTheLockOfTheGoClientIsNotReentrant(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		l := zk.NewLock(c.Conn, "/lock", open)
		require.ErrorIs(t, l.Unlock(), zk.ErrNotLocked)
		require.NoError(t, l.LockWithData([]byte("me")))
		require.ErrorIs(t, l.Lock(), zk.ErrDeadlock)
		names := srv.Children("/lock")
		require.Len(t, names, 1)
		zktest.CheckNode(t, srv, "/lock/"+names[0], []byte("me"))
		require.NoError(t, l.Unlock())
		require.NoError(t, l.Lock(), "again")
		require.NoError(t, l.Unlock())
		zktest.CheckChildren(t, srv, "/lock")
	})
}

func TestALockOfTheGoClientGoesWithItsSession(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		require.NoError(t, zk.NewLock(c.Conn, "/lock", open).Lock())
		other := newGozk(t, srv.Dial, &hostList{}, 30*time.Second)
		granted := make(chan error, 1)
		next := zk.NewLock(other.Conn, "/lock", open)
		go func() { granted <- next.Lock() }()
		zktest.WaitChildren(t, srv, "/lock", 2)
		require.True(t, pending(granted))
		srv.Expire(c.SessionID())
		require.NoError(t, <-granted)
		require.NoError(t, next.Unlock())
		synctest.Wait()
	})
}

// The node of a create whose answer was lost is found by its name, and not made twice.
func TestTheGoClientFindsItsProtectedNodeAgain(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/p", 0)
		for range 2 {
			srv.Intercept(zktest.On(zktest.Create, "/p/_c_*").Nth(1).LoseReply())
			path, err := c.CreateProtectedEphemeralSequential("/p/n-", []byte("x"), open)
			require.NoError(t, err)
			require.Regexp(t, `^/p/_c_[0-9a-f]{32}-n-\d{10}$`, path)
			zktest.CheckNode(t, srv, path, []byte("x"))
			require.Equal(t, c.SessionID(), node(t, srv, path).Stat.EphemeralOwner)
		}
		zktest.WaitChildren(t, srv, "/p", 2)
	})
}

func TestTheGoClientRepeatsAProtectedCreateThatWasLost(t *testing.T) {
	t.Parallel()
	withGozk(t, func(t *testing.T, srv *zktest.Server, c *gozk) {
		mustCreate(t, c.Conn, "/p", 0)
		lost := srv.Intercept(zktest.On(zktest.Create, "/p/_c_*").Times(2).LoseRequest())
		path, err := c.CreateProtectedEphemeralSequential("/p/n-", nil, open)
		require.NoError(t, err)
		require.Regexp(t, `-n-0000000000$`, path)
		require.Equal(t, 2, lost.Fired())
		zktest.WaitChildren(t, srv, "/p", 1)

		srv.Intercept(zktest.On(zktest.Create, "/p/_c_*").LoseRequest())
		_, err = c.CreateProtectedEphemeralSequential("/p/n-", nil, open)
		require.ErrorIs(t, err, zk.ErrConnectionClosed, "three times and no more")
		zktest.WaitChildren(t, srv, "/p", 1)
	})
}
