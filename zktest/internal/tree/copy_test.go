package tree

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func TestACopyOfATreeLivesAndDiesByItself(t *testing.T) {
	a := New()
	create := func(tr *Tree, path string, owner int64) {
		require.Equal(t, wire.CodeOK, tr.create(path, nil, nil, owner, 1, 1, 0))
	}
	create(a, "/ttl", ttlMark|1000)
	create(a, "/box", wire.ContainerOwner)
	b := a.Copy()
	create(b, "/ttl2", ttlMark|1000)
	create(b, "/box2", wire.ContainerOwner)
	require.Equal(t, wire.CodeOK, b.remove("/ttl", 2))
	require.Equal(t, wire.CodeOK, b.remove("/box", 2))
	require.Equal(t, []string{"/ttl"}, a.ttls.list())
	require.Equal(t, []string{"/box"}, a.containers.list())
	require.Equal(t, []string{"/ttl2"}, b.ttls.list())
	require.Equal(t, []string{"/box2"}, b.containers.list())
}

func TestPathsAreJudgedAsByTheRealServer(t *testing.T) {
	for _, good := range []string{"/", "/a", "/a/b", "/a.b", "/...", "/ä", "/a b", "/日本"} {
		require.True(t, validPath(good), "%q", good)
	}
	for _, bad := range []string{
		"", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a/./b", "/\x00", "/\x1f", "/\x7f", "/\u009f", "/\ufff0", "/\U0001F600",
	} {
		require.False(t, validPath(bad), "%q", bad)
	}
}

func TestATreeKnowsWhenItIsInconsistent(t *testing.T) {
	for what, spoil := range map[string]func(*Tree){
		"a node that is nobody's child": func(tr *Tree) { tr.nodes["/x"] = &Node{} },
		"a child that is no node":       func(tr *Tree) { delete(tr.nodes, "/zookeeper/quota") },
		"a wrong size":                  func(tr *Tree) { tr.DataSize++ },
		"an ephemeral of nobody":        func(tr *Tree) { tr.ephemerals[5] = newNameSet(8); tr.ephemerals[5].add("/e") },
		"a container that is none":      func(tr *Tree) { tr.containers.add("/zookeeper") },
	} {
		tr := New()
		require.NoError(t, tr.Check())
		spoil(tr)
		require.Error(t, tr.Check(), what)
	}
}
