package mutex_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// throng makes the sessions of the mutexes learn that many want the lock, and the servers their identities.
func throng(v *proving.Env, ms []*zksync.Mutex) {
	v.T.Helper()
	for range 3 {
		drain(v, v.Line(ms...))
	}
}

// drain unlocks, one after the other.
func drain(v *proving.Env, line []*proving.Attempt) {
	v.T.Helper()
	for _, a := range line {
		require.NoError(v.T, v.Granted(a).Unlock())
	}
	v.Queued(proving.LockPath, 0)
}

// sealed is how many of the entries are sealed.
func sealed(v *proving.Env) (n int) {
	for _, name := range v.Children(proving.LockPath) {
		if queue.Sealed(name) {
			n++
		}
	}
	return n
}

func TestNobodyElseWritesToASealedEntry(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(5)
		throng(v, ms)
		line := v.Line(ms...)
		require.Equal(t, len(ms), sealed(v))
		stranger := v.Session().Conn()
		for _, name := range v.Children(proving.LockPath) {
			if !queue.Sealed(name) {
				continue
			}
			node := v.Chroot + proving.LockPath + "/" + name
			_, err := stranger.Set(node, []byte("revoke"), -1)
			require.ErrorIs(t, err, zk.ErrNoAuth)
			_, err = stranger.SetACL(node, zk.WorldACL(zk.PermAll), -1)
			require.ErrorIs(t, err, zk.ErrNoAuth)
			_, _, err = stranger.Get(node)
			require.NoError(t, err, "people may look at it as before")
		}
		drain(v, line)
	})
}

// A release is one request, after which nobody asks anything, however many wait.
func TestAReleaseInACrowdCostsOneRequest(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(8)
		throng(v, ms)
		crowded := ms[2:] // whose entries are sealed
		var line []*proving.Attempt
		v.Costs(2+3*(len(crowded)-1), func() { line = v.Line(crowded...) }, "a read and the entry of each; the watches of those who wait")
		for i, a := range line {
			l := v.Granted(a)
			// The one behind has asked for proof that its session lives only if it knew that it was the next.
			v.Costs(1, func() { require.NoError(t, l.Unlock()) }, i)
		}
	})
}

// Many programs make an object for each use of a lock. It knows what another object of its session met.
func TestANewObjectKnowsOfTheCrowd(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		var old, made []*zksync.Mutex
		for range 8 {
			s := v.Session()
			old, made = append(old, zksync.NewMutex(s, proving.LockPath)), append(made, zksync.NewMutex(s, proving.LockPath))
		}
		throng(v, old)
		made = made[2:] // of sessions that met a crowd, not only one or two others
		var line []*proving.Attempt
		v.Costs(2+3*(len(made)-1), func() { line = v.Line(made...) }, "as with the old objects: nobody lists")
		for i, a := range line {
			l := v.Granted(a)
			v.Costs(1, func() { require.NoError(t, l.Unlock()) }, i)
		}
	})
}

// A hold of this process ends with the hand-on of its node, a new entry in the same transaction.
func TestAHandOnInACrowdGrantsTheNext(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(4, zksync.WithHandover(0))
		throng(v, ms)
		line := v.Line(ms[3], ms[2])
		again := proving.Begin(t.Context(), ms[3])
		v.Quiet()
		require.NoError(t, v.Granted(line[0]).Unlock())
		require.NoError(t, v.Granted(line[1]).Unlock())
		require.NoError(t, v.Granted(again).Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

// The hand-on writes to the node that it gives up. Somebody has removed that a moment before.
func TestAHandOnInACrowdGoesOnWithoutTheNode(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3, zksync.WithHandover(0))
		throng(v, ms)
		s := v.Session()
		ms = append(ms, zksync.NewMutex(s, proving.LockPath, zksync.WithHandover(0)))
		throng(v, ms)
		line := v.Line(ms[3], ms[2])
		again := proving.Begin(t.Context(), ms[3])
		v.Quiet()
		mine := v.Granted(line[0])
		defer v.Server.Delay(s.ID(), 100*time.Millisecond, 0)()
		unlocked := make(chan error, 1)
		go func() { unlocked <- mine.Unlock() }()
		time.Sleep(50 * time.Millisecond)
		v.Server.DeleteAll(mine.Node())
		require.NoError(t, <-unlocked)
		require.NoError(t, v.Granted(line[1]).Unlock())
		require.NoError(t, v.Granted(again).Unlock())
		v.Queued(proving.LockPath, 0)
	})
}

func TestAGuardedWriteToAnEntryIsRefused(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(4)
		throng(v, ms)
		line := v.Line(ms[3], ms[2])
		l := v.Granted(line[0])
		_, err := l.Guard(t.Context(), &zk.SetDataRequest{Path: l.Node(), Version: -1})
		require.ErrorIs(t, err, zksync.ErrMisuse)
		require.ErrorContains(t, err, l.Node())
		require.True(t, line[1].Pending())
		require.NoError(t, l.Unlock())
		require.NoError(t, v.Granted(line[1]).Unlock())
	})
}

// The scheme "auth" means what the user has presented, and nothing of ours.
func TestTheIdentityOfASessionGetsIntoNoListOfAUser(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3)
		own := v.Session()
		ms = append(ms, zksync.NewMutex(own, proving.LockPath))
		throng(v, ms)
		_, err := own.Conn().Create(v.Chroot+"/mine", nil, zk.FlagEphemeral, zk.AuthACL(zk.PermAll))
		require.ErrorIs(t, err, zk.ErrInvalidACL, "it has presented nothing")
		drain(v, v.Line(ms...))
		line := v.Line(ms[:3]...)
		proved := sealed(v)
		last := proving.Begin(t.Context(), ms[3])
		v.Queued(proving.LockPath, 4)
		require.Equal(t, proved, sealed(v), "from then on its entries are as ever")
		drain(v, append(line, last))
	})
}

func TestAListOfWhatIsPresentedIsThatOfTheUser(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ms := v.Mutexes(3)
		own := v.Session(zksync.WithAuth("digest", []byte("ann:secret")))
		ms = append(ms, zksync.NewMutex(own, proving.LockPath))
		throng(v, ms)
		l := v.Lock(zksync.NewMutex(own, "/vault", zksync.WithACL(zk.AuthACL(zk.PermAll)...)))
		acl, _, err := own.Conn().GetACL(v.Chroot + l.Node())
		require.NoError(t, err)
		require.Len(t, acl, 1)
		require.True(t, strings.HasPrefix(acl[0].ID, "ann:"), acl[0].ID)
		require.NoError(t, l.Unlock())
	})
}

// A guarded transaction goes over the connection on which the identity was presented.
func TestTheIdentityOfASessionGetsIntoNoGuardedNode(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		nobody, ann := v.Session(), v.Session(zksync.WithAuth("digest", []byte("ann:secret")))
		ms := append(v.Mutexes(3), zksync.NewMutex(nobody, proving.LockPath), zksync.NewMutex(ann, proving.LockPath))
		throng(v, ms)
		line := v.Line(ms...)
		for i, a := range line {
			l := v.Granted(a)
			if i >= 3 {
				_, err := l.Guard(t.Context(), &zk.CreateRequest{Path: "/mine", Acl: zk.AuthACL(zk.PermAll), Flags: zk.FlagEphemeral})
				if i == 3 {
					require.ErrorIs(t, err, zk.ErrInvalidACL, "it has presented nothing")
				} else {
					require.NoError(t, err)
				}
			}
			require.NoError(t, l.Unlock())
		}
		acl, _, err := ann.Conn().GetACL(v.Chroot + "/mine")
		require.NoError(t, err)
		require.Len(t, acl, 1)
		require.True(t, strings.HasPrefix(acl[0].ID, "ann:"), acl[0].ID)
		v.Queued(proving.LockPath, 0)
	})
}
