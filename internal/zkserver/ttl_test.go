package zkserver

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func ttlBody(path string, ttl time.Duration, flags int32) func(*Encoder) {
	return func(e *Encoder) {
		createBody(path, []byte("x"), OpenACL(), flags)(e)
		e.Int64(ttl.Milliseconds())
	}
}

func TestANodeWithATimeToLiveGoesWhenItWasNotWrittenForSoLong(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true, ContainerInterval: 10 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		r := w.do(OpCreateTTL, ttlBody("/idle", 15*time.Second, flagTTL))
		require.Equal(t, "/idle", r.body.Text())
		require.Zero(t, decodeStat(r.body).EphemeralOwner, "clients cannot tell it from a persistent node")
		require.Equal(t, 15*time.Second, mustNode(t, s, "/idle").TTL)
		w.do(OpCreateTTL, ttlBody("/written", 15*time.Second, flagTTL))
		w.do(OpExists, watchBody("/idle", true))

		time.Sleep(10 * time.Second)
		w.do(OpSetData, setBody("/written", nil, -1))
		time.Sleep(10*time.Second - time.Millisecond)
		synctest.Wait()
		mustNode(t, s, "/idle")
		time.Sleep(time.Millisecond)
		w.requireEvent(EventDeleted, "/idle")
		mustNode(t, s, "/written")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		_, ok := s.Node("/written")
		require.False(t, ok, "20 s after it was written, at the next look")
	})
}

func TestATimeToLiveIsOverAfterItAndNotAtIt(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true, ContainerInterval: 10 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.do(OpCreateTTL, ttlBody("/exact", 10*time.Second, flagTTL))
		w.do(OpCreateTTL, ttlBody("/less", 10*time.Second-time.Millisecond, flagTTL))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		mustNode(t, s, "/exact")
		_, ok := s.Node("/less")
		require.False(t, ok)
	})
}

func TestChildrenKeepANodeWithATimeToLive(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true, ContainerInterval: 10 * time.Second}, func(t *testing.T, s *Server) {
		w, other := join(t, s, 40*time.Second), join(t, s, 40*time.Second)
		w.do(OpCreateTTL, ttlBody("/n", time.Second, flagTTL))
		other.create("/n/e", nil, FlagEphemeral)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, s.ChildCount("/n"))
		require.EqualValues(t, 4, s.Zxid(), "its removal is not even tried")
		require.Equal(t, CodeOK, other.do(OpClose, nil).code)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, -1, s.ChildCount("/n"), "a child does not renew it")
	})
}

func TestACopyOfATreeLivesAndDiesByItself(t *testing.T) {
	a := newTree()
	create := func(tr *tree, path string, owner int64) {
		require.Equal(t, CodeOK, tr.create(path, nil, nil, owner, 1, 1, 0))
	}
	create(a, "/ttl", ttlMark|1000)
	create(a, "/box", ContainerOwner)
	b := a.copy()
	create(b, "/ttl2", ttlMark|1000)
	create(b, "/box2", ContainerOwner)
	require.Equal(t, CodeOK, b.remove("/ttl", 2))
	require.Equal(t, CodeOK, b.remove("/box", 2))
	require.Equal(t, []string{"/ttl"}, a.ttls.list())
	require.Equal(t, []string{"/box"}, a.containers.list())
	require.Equal(t, []string{"/ttl2"}, b.ttls.list())
	require.Equal(t, []string{"/box2"}, b.containers.list())
}

func TestWithoutExtendedTypesATimeToLiveIsUnimplemented(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		for _, flags := range []int32{flagTTL, flagTTLSeq} {
			require.Equal(t, CodeUnimplemented, w.do(OpCreateTTL, ttlBody("/n", time.Second, flags)).code)
			require.Equal(t, CodeUnimplemented, w.do(OpCreateTTL, ttlBody("bad", 0, flags)).code, "it is checked before all else")
			require.Equal(t, CodeUnimplemented, w.create("/n", nil, flags).code)
			noPath := nullPath(func(e *Encoder) { e.Buffer(nil); e.ACL(OpenACL()); e.Int32(flags) })
			require.Equal(t, CodeUnimplemented, w.do(OpCreate, noPath).code)
		}
		r := w.do(OpMulti, multiBody(part(OpCreateTTL, ttlBody("/n", time.Second, flagTTL))))
		require.Equal(t, []Code{CodeUnimplemented}, multiCodes(t, r.body))
	})
}

func TestTheLimitsOfATimeToLive(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		longest := time.Duration(1<<40-1) * time.Millisecond
		require.Equal(t, CodeOK, w.do(OpCreateTTL, ttlBody("/longest", longest, flagTTL)).code)
		require.Equal(t, longest, mustNode(t, s, "/longest").TTL)
		require.Equal(t, CodeOK, w.do(OpCreateTTL, ttlBody("/shortest", time.Millisecond, flagTTL)).code)
		require.Equal(t, "/s-0000000002", w.do(OpCreateTTL, ttlBody("/s-", time.Hour, flagTTLSeq)).body.Text())
		for _, ttl := range []time.Duration{longest + time.Millisecond, 0, -time.Millisecond, math.MinInt64, math.MaxInt64} {
			require.Equal(t, CodeBadArguments, w.do(OpCreateTTL, ttlBody("/n", ttl, flagTTL)).code, ttl)
			require.Equal(t, CodeBadArguments, w.do(OpCreateTTL, ttlBody("/n", ttl, flagTTLSeq)).code, ttl)
		}
		for _, op := range []Op{OpCreate, OpCreate2, OpCreateContainer} {
			require.Equal(t, CodeBadArguments, w.do(op, createBody("/n", nil, OpenACL(), flagTTL)).code, "there is no field for it")
		}
		for _, flags := range []int32{0, FlagEphemeral, FlagSequential, flagContainer} {
			require.Equal(t, CodeBadArguments, w.do(OpCreateTTL, ttlBody("/n", time.Second, flags)).code, "it has no meaning there")
		}
	})
}

func TestATimeToLiveWithinAMulti(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true, ContainerInterval: 10 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		r := w.do(OpMulti, multiBody(
			part(OpCreateTTL, ttlBody("/a", time.Second, flagTTL)),
			part(OpCreateTTL, ttlBody("/b-", time.Second, flagTTLSeq)),
			part(OpCreateTTL, ttlBody("/plain", time.Second, 0)),
			part(OpCreateTTL, ttlBody("/box", time.Second, flagContainer)),
			part(OpCreateTTL, ttlBody("/e", time.Second, FlagEphemeral)),
		))
		require.Equal(t, []Code{0, 0, 0, 0, 0}, multiCodes(t, r.body))
		require.Equal(t, time.Second, mustNode(t, s, "/a").TTL)
		require.Equal(t, time.Second, mustNode(t, s, "/b-0000000001").TTL)
		require.Zero(t, mustNode(t, s, "/plain").TTL, "the flags decide")
		require.True(t, mustNode(t, s, "/box").Container)
		require.Equal(t, w.id, mustNode(t, s, "/e").Stat.EphemeralOwner)
		r = w.do(OpMulti, multiBody(
			part(OpCreate, createBody("/x", nil, OpenACL(), 0)), part(OpCreateTTL, ttlBody("/y", 0, flagTTL))))
		require.Equal(t, []Code{CodeOK, CodeBadArguments}, multiCodes(t, r.body))
		require.Equal(t, CodeMarshalling, w.do(OpMulti, multiBody(
			part(OpCreate, createBody("/x", nil, OpenACL(), flagTTL)))).code)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		names, _ := s.Children("/")
		require.Equal(t, []string{"box", "e", "plain", "zookeeper"}, names)
	})
}

func TestANodeWithATimeToLiveIsNobodysEphemeral(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.do(OpCreateTTL, ttlBody("/n", time.Hour, flagTTL))
		require.Empty(t, s.Sessions()[0].Ephemerals)
		require.Equal(t, CodeOK, w.create("/n/k", nil, 0).code, "it may have children")
		require.Equal(t, CodeOK, w.do(OpClose, nil).code)
		require.Equal(t, 1, s.ChildCount("/n"))
		require.Zero(t, s.tree.ephemeralCount())
	})
}
