package watch

import (
	"maps"
	"slices"
)

// Kind is what a watch sees and how long it lives.
type Kind int

// The kinds of watches.
const (
	Data       Kind = iota // gone after one change of the node
	Children               // gone after one change of its children
	Persistent             // stays
	Recursive              // stays, and sees everything below its path too
)

var kindNames = [...]string{"data", "children", "persistent", "recursive"}

// String returns "data", "children", "persistent" or "recursive".
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "watch?"
	}
	return kindNames[k]
}

// List yields the watches that are set, in no order. A persistent one is there twice.
func (w *Watches) List(yield func(path string, who Watcher, kind Kind) bool) {
	for _, t := range []struct {
		table *watchTable
		kind  Kind
	}{{w.data, Data}, {w.child, Children}} {
		for path, ws := range t.table.byPath {
			for who, mode := range ws {
				for _, k := range []struct {
					mode watchMode
					kind Kind
				}{{oneShot, t.kind}, {persistent, Persistent}, {recursive, Recursive}} {
					if mode&k.mode != 0 && !yield(path, who, k.kind) {
						return
					}
				}
			}
		}
	}
}

// Paths returns the paths that are watched, sorted.
func (w *Watches) Paths() []string {
	set := map[string]struct{}{}
	w.List(func(path string, _ Watcher, _ Kind) bool {
		set[path] = struct{}{}
		return true
	})
	return slices.Sorted(maps.Keys(set))
}

// DataByWatcher returns the paths of data watches, sorted, by watcher. Whoever has ever had one is there.
func (w *Watches) DataByWatcher() map[Watcher][]string {
	out := make(map[Watcher][]string, len(w.data.byWatcher))
	for who, paths := range w.data.byWatcher {
		out[who] = slices.Sorted(maps.Keys(paths))
	}
	return out
}

// DataByPath returns the watchers of data, by path.
func (w *Watches) DataByPath() map[string][]Watcher {
	out := make(map[string][]Watcher, len(w.data.byPath))
	for path, ws := range w.data.byPath {
		out[path] = slices.Collect(maps.Keys(ws))
	}
	return out
}

// DataCount returns the number of data watches.
func (w *Watches) DataCount() int { return w.data.n }
