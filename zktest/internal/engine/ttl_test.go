package engine

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func ttlBody(path string, ttl time.Duration, flags int32) func(*wire.Encoder) {
	return func(e *wire.Encoder) {
		createBody(path, []byte("x"), wire.OpenACL(), flags)(e)
		e.Int64(ttl.Milliseconds())
	}
}

func TestANodeWithATimeToLiveGoesWhenItWasNotWrittenForSoLong(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true, ContainerInterval: 10 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		r := w.do(wire.OpCreateTTL, ttlBody("/idle", 15*time.Second, wire.FlagTTL))
		require.Equal(t, "/idle", r.body.Text())
		require.Zero(t, r.body.Stat().EphemeralOwner, "clients cannot tell it from a persistent node")
		require.Equal(t, 15*time.Second, mustNode(t, s, "/idle").TTL)
		w.do(wire.OpCreateTTL, ttlBody("/written", 15*time.Second, wire.FlagTTL))
		w.do(wire.OpExists, watchBody("/idle", true))

		time.Sleep(10 * time.Second)
		w.do(wire.OpSetData, setBody("/written", nil, -1))
		time.Sleep(10*time.Second - time.Millisecond)
		synctest.Wait()
		mustNode(t, s, "/idle")
		time.Sleep(time.Millisecond)
		w.requireEvent(wire.EventDeleted, "/idle")
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
		w.do(wire.OpCreateTTL, ttlBody("/exact", 10*time.Second, wire.FlagTTL))
		w.do(wire.OpCreateTTL, ttlBody("/less", 10*time.Second-time.Millisecond, wire.FlagTTL))
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
		w.do(wire.OpCreateTTL, ttlBody("/n", time.Second, wire.FlagTTL))
		other.create("/n/e", nil, wire.FlagEphemeral)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, s.ChildCount("/n"))
		require.EqualValues(t, 4, s.Zxid(), "its removal is not even tried")
		require.Equal(t, wire.CodeOK, other.do(wire.OpClose, nil).code)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, -1, s.ChildCount("/n"), "a child does not renew it")
	})
}

func TestWithoutExtendedTypesATimeToLiveIsUnimplemented(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		for _, flags := range []int32{wire.FlagTTL, wire.FlagTTLSequential} {
			require.Equal(t, wire.CodeUnimplemented, w.do(wire.OpCreateTTL, ttlBody("/n", time.Second, flags)).code)
			require.Equal(t, wire.CodeUnimplemented, w.do(wire.OpCreateTTL, ttlBody("bad", 0, flags)).code, "it is checked before all else")
			require.Equal(t, wire.CodeUnimplemented, w.create("/n", nil, flags).code)
			noPath := nullPath(func(e *wire.Encoder) { e.Buffer(nil); e.ACL(wire.OpenACL()); e.Int32(flags) })
			require.Equal(t, wire.CodeUnimplemented, w.do(wire.OpCreate, noPath).code)
		}
		r := w.do(wire.OpMulti, multiBody(part(wire.OpCreateTTL, ttlBody("/n", time.Second, wire.FlagTTL))))
		require.Equal(t, []wire.Code{wire.CodeUnimplemented}, multiCodes(t, r.body))
	})
}

func TestTheLimitsOfATimeToLive(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		longest := time.Duration(1<<40-1) * time.Millisecond
		require.Equal(t, wire.CodeOK, w.do(wire.OpCreateTTL, ttlBody("/longest", longest, wire.FlagTTL)).code)
		require.Equal(t, longest, mustNode(t, s, "/longest").TTL)
		require.Equal(t, wire.CodeOK, w.do(wire.OpCreateTTL, ttlBody("/shortest", time.Millisecond, wire.FlagTTL)).code)
		require.Equal(t, "/s-0000000002", w.do(wire.OpCreateTTL, ttlBody("/s-", time.Hour, wire.FlagTTLSequential)).body.Text())
		for _, ttl := range []time.Duration{longest + time.Millisecond, 0, -time.Millisecond, math.MinInt64, math.MaxInt64} {
			require.Equal(t, wire.CodeBadArguments, w.do(wire.OpCreateTTL, ttlBody("/n", ttl, wire.FlagTTL)).code, ttl)
			require.Equal(t, wire.CodeBadArguments, w.do(wire.OpCreateTTL, ttlBody("/n", ttl, wire.FlagTTLSequential)).code, ttl)
		}
		for _, op := range []wire.Op{wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer} {
			require.Equal(t, wire.CodeBadArguments, w.do(op, createBody("/n", nil, wire.OpenACL(), wire.FlagTTL)).code, "there is no field for it")
		}
		for _, flags := range []int32{0, wire.FlagEphemeral, wire.FlagSequential, wire.FlagContainer} {
			require.Equal(t, wire.CodeBadArguments, w.do(wire.OpCreateTTL, ttlBody("/n", time.Second, flags)).code, "it has no meaning there")
		}
	})
}

func TestATimeToLiveWithinAMulti(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true, ContainerInterval: 10 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		r := w.do(wire.OpMulti, multiBody(
			part(wire.OpCreateTTL, ttlBody("/a", time.Second, wire.FlagTTL)),
			part(wire.OpCreateTTL, ttlBody("/b-", time.Second, wire.FlagTTLSequential)),
			part(wire.OpCreateTTL, ttlBody("/plain", time.Second, 0)),
			part(wire.OpCreateTTL, ttlBody("/box", time.Second, wire.FlagContainer)),
			part(wire.OpCreateTTL, ttlBody("/e", time.Second, wire.FlagEphemeral)),
		))
		require.Equal(t, []wire.Code{0, 0, 0, 0, 0}, multiCodes(t, r.body))
		require.Equal(t, time.Second, mustNode(t, s, "/a").TTL)
		require.Equal(t, time.Second, mustNode(t, s, "/b-0000000001").TTL)
		require.Zero(t, mustNode(t, s, "/plain").TTL, "the flags decide")
		require.True(t, mustNode(t, s, "/box").Container)
		require.Equal(t, w.id, mustNode(t, s, "/e").Stat.EphemeralOwner)
		r = w.do(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/x", nil, wire.OpenACL(), 0)), part(wire.OpCreateTTL, ttlBody("/y", 0, wire.FlagTTL))))
		require.Equal(t, []wire.Code{wire.CodeOK, wire.CodeBadArguments}, multiCodes(t, r.body))
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/x", nil, wire.OpenACL(), wire.FlagTTL)))).code)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		names, _ := s.Children("/")
		require.Equal(t, []string{"box", "e", "plain", "zookeeper"}, names)
	})
}

func TestANodeWithATimeToLiveIsNobodysEphemeral(t *testing.T) {
	inBubble(t, Config{ExtendedTypes: true}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.do(wire.OpCreateTTL, ttlBody("/n", time.Hour, wire.FlagTTL))
		require.Empty(t, s.Sessions()[0].Ephemerals)
		require.Equal(t, wire.CodeOK, w.create("/n/k", nil, 0).code, "it may have children")
		require.Equal(t, wire.CodeOK, w.do(wire.OpClose, nil).code)
		require.Equal(t, 1, s.ChildCount("/n"))
		require.Zero(t, s.tree.EphemeralCount())
	})
}
