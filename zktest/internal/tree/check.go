package tree

import (
	"fmt"
	"slices"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Check compares what the tree keeps twice, for tests: children with nodes, sizes and lists with what there is.
func (t *Tree) Check() error {
	kids, size, owned := 0, 0, 0
	containers, ttls := []string{}, []string{}
	for path, n := range t.nodes {
		if path == "" {
			continue
		}
		kids += n.children.len()
		size += len(path) + len(n.Data)
		switch {
		case n.stat.owner == wire.ContainerOwner:
			containers = append(containers, path)
		case isTTL(n.stat.owner):
			ttls = append(ttls, path)
		case n.stat.owner != 0:
			owned++
			if !t.ephemerals[n.stat.owner].has(path) {
				return fmt.Errorf("%s is not among the ephemerals of its session", path)
			}
		}
		if parent, name := SplitPath(path); path != "/" && !t.nodes[parent].children.has(name) {
			return fmt.Errorf("%s is not a child of its parent", path)
		}
	}
	same := func(set *nameSet, want []string) bool {
		slices.Sort(want)
		return slices.Equal(slices.Sorted(slices.Values(set.list())), want)
	}
	switch {
	case kids != len(t.nodes)-2: // without the root, which is there twice
		return fmt.Errorf("%d children, %d nodes", kids, len(t.nodes)-2)
	case int64(size) != t.DataSize:
		return fmt.Errorf("%d bytes, counted %d", size, t.DataSize)
	case owned != t.EphemeralCount():
		return fmt.Errorf("%d ephemerals, counted %d", owned, t.EphemeralCount())
	case !same(t.containers, containers) || !same(t.ttls, ttls):
		return fmt.Errorf("containers %q, nodes with a time to live %q", containers, ttls)
	}
	return nil
}
