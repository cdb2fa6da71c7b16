package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func (w *rawClient) container(path string) {
	w.t.Helper()
	require.Equal(w.t, wire.CodeOK, w.do(wire.OpCreateContainer, createBody(path, nil, wire.OpenACL(), wire.FlagContainer)).code)
}

// used makes a container that has had a child.
func (w *rawClient) used(path string) {
	w.t.Helper()
	w.container(path)
	w.create(path+"/k", nil, 0)
	require.Equal(w.t, wire.CodeOK, w.do(wire.OpDelete, versionBody(path+"/k", -1)).code)
}

func TestContainersGoInTheOrderOfARealServersTable(t *testing.T) {
	inBubble(t, Config{ContainerInterval: 20 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		for _, name := range []string{"/gone", "/k1", "/zz", "/aa", "/Ab", "/q", "/h"} {
			w.used(name)
			w.do(wire.OpExists, watchBody(name, true))
		}
		time.Sleep(20 * time.Second)
		for _, name := range []string{"/Ab", "/q", "/k1", "/gone", "/h", "/zz", "/aa"} {
			w.requireEvent(wire.EventDeleted, name)
		}
	})
}

func TestAContainerThatIsBeingFilledStays(t *testing.T) {
	inBubble(t, Config{CommitLatency: 2 * time.Millisecond, ContainerInterval: 20 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.used("/c")
		time.Sleep(20*time.Second - time.Millisecond - s.elapsed())
		// In flight when the container, still empty, is found: the removal is refused, and the child is made.
		require.Equal(t, wire.CodeOK, w.create("/c/new", nil, 0).code)
		require.Greater(t, s.elapsed(), 20*time.Second)
		time.Sleep(time.Second)
		require.Equal(t, 1, s.ChildCount("/c"))
		require.Equal(t, wire.CodeOK, w.do(wire.OpDelete, versionBody("/c/new", -1)).code)
		time.Sleep(20 * time.Second)
		require.Equal(t, -1, s.ChildCount("/c"))
	})
}

func TestNestedContainersGoOneAfterTheOther(t *testing.T) {
	inBubble(t, Config{ContainerInterval: 10 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.container("/a")
		w.used("/a/b")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, 0, s.ChildCount("/a"), "the inner one at the first look")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, -1, s.ChildCount("/a"), "the outer one at the next")
	})
}

func TestEphemeralsOfAnEndedSessionLeaveAContainerToBeRemoved(t *testing.T) {
	inBubble(t, Config{Tick: time.Second, ContainerInterval: 30 * time.Second}, func(t *testing.T, s *Server) {
		w := join(t, s, 5*time.Second)
		w.container("/c")
		w.create("/c/e", nil, wire.FlagEphemeral)
		time.Sleep(29 * time.Second) // the session expires meanwhile
		synctest.Wait()
		require.Equal(t, 0, s.ChildCount("/c"))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, -1, s.ChildCount("/c"))
	})
}

func TestAContainerThatNeverHadAChildGoesWhenTheServerIsToldSo(t *testing.T) {
	cfg := Config{ContainerInterval: 10 * time.Second, ContainerUnused: 15 * time.Second}
	inBubble(t, cfg, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.container("/unused")
		w.container("/parent")
		w.create("/parent/k", nil, 0)
		time.Sleep(20*time.Second - time.Millisecond)
		synctest.Wait()
		require.Equal(t, 0, s.ChildCount("/unused"))
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, -1, s.ChildCount("/unused"))
		require.Equal(t, 1, s.ChildCount("/parent"))
	})
}

func TestTheContainerFlagAloneMakesNoContainerButWithinAMulti(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		require.Equal(t, wire.CodeOK, w.create("/flag", nil, wire.FlagContainer).code)
		require.False(t, mustNode(t, s, "/flag").Container)
		require.Equal(t, wire.CodeOK, w.do(wire.OpCreate2, createBody("/flag2", nil, wire.OpenACL(), wire.FlagContainer)).code)
		require.False(t, mustNode(t, s, "/flag2").Container)
		require.Equal(t, wire.CodeOK, w.do(wire.OpCreateContainer, createBody("/op", nil, wire.OpenACL(), 0)).code)
		require.True(t, mustNode(t, s, "/op").Container, "outside of a multi the operation decides")
		w.do(wire.OpMulti, multiBody(
			part(wire.OpCreate, createBody("/in", nil, wire.OpenACL(), wire.FlagContainer)),
			part(wire.OpCreateContainer, createBody("/not", nil, wire.OpenACL(), 0))))
		require.True(t, mustNode(t, s, "/in").Container)
		require.False(t, mustNode(t, s, "/not").Container)
	})
}

func TestAClientCannotRemoveContainersItself(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.used("/c")
		before := s.Zxid()
		require.Equal(t, wire.CodeBadArguments, w.do(wire.OpDeleteContainer, versionBody("/c", -1)).code)
		require.Equal(t, before+1, s.Zxid())
		mustNode(t, s, "/c")
	})
}
