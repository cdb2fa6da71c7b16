package tree

import "time"

// Reapable counts the nodes that can become due for removal: containers, and nodes with a time to live.
func (t *Tree) Reapable() int { return t.containers.len() + t.ttls.len() }

// Due returns the nodes that have outlived their use, in the order of the real server's hash table. unused is the time after which a
// container that never had a child is one of them; 0 for never.
func (t *Tree) Due(ms int64, unused time.Duration) []string {
	paths := newNameSet(16)
	for _, path := range t.containers.list() {
		if t.nodes[path].abandoned(ms, unused) {
			paths.add(path)
		}
	}
	for _, path := range t.ttls.list() {
		if n := t.nodes[path]; n.children.len() == 0 && n.age(ms) > ttlOf(n.stat.owner) {
			paths.add(path)
		}
	}
	return paths.list()
}

// abandoned reports whether a container has had children and has none any more, or never got one in the
// time that it is given for that.
func (n *Node) abandoned(ms int64, unused time.Duration) bool {
	if n.children.len() > 0 {
		return false
	}
	return n.stat.cversion > 0 || unused > 0 && n.age(ms) > unused
}

// age is the time since the node was last written, in whole milliseconds of the time of day.
func (n *Node) age(ms int64) time.Duration { return time.Duration(ms-n.stat.mtime) * time.Millisecond }
