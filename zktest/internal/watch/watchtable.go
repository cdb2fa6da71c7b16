package watch

import (
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Watcher receives watch events; a connection is one. Whom the release does not tell, because the node's access control list
// does not let it read, loses the watch all the same.
type Watcher interface {
	Notify(e Event)
}

// Event is what a watcher is told. ACL is that of the node in question, Zxid that of the transaction.
type Event struct {
	Type wire.EventType
	Path string
	ACL  []wire.ACL
	Zxid int64
}

// watchMode says how long watches live and what they see: a set, which has one member except in a release with several modes.
type watchMode uint8

const (
	oneShot    watchMode = 1 << iota // goes with its first event
	persistent                       // stays
	recursive                        // stays, and sees everything below its path too
)

// modeOnWire translates the mode of an addWatch request.
func modeOnWire(m int32) (watchMode, bool) {
	switch m {
	case 0:
		return persistent, true
	case 1:
		return recursive, true
	}
	return 0, false
}

// watchTable keeps watches, by path and by watcher. A watcher is at most once on a path. Before 3.9
// the mode in which it asked last replaces the one before, so that an ordinary
// getData with a watch turns a persistent watch into one that goes with its next event. Since then the modes add up.
type watchTable struct {
	several bool // modes add up
	byPath  map[string]map[Watcher]watchMode
	// byWatcher has an entry for whoever has ever had a watch here, until drop: the
	// real server counts those when it reports how many connections watch.
	byWatcher map[Watcher]map[string]struct{}
	fired     *firings
	n         int         // watches
	recursive map[int]int // how many recursive ones there are on paths of each length
}

func newWatchTable(f *firings, several bool) *watchTable {
	return &watchTable{several: several, byPath: map[string]map[Watcher]watchMode{}, byWatcher: map[Watcher]map[string]struct{}{}, recursive: map[int]int{}, fired: f}
}

func (w *watchTable) add(path string, who Watcher, mode watchMode) {
	ws := w.byPath[path]
	if ws == nil {
		ws = map[Watcher]watchMode{}
		w.byPath[path] = ws
	}
	if old, dup := ws[who]; dup {
		w.forget(path, old)
		if w.several {
			mode |= old
		}
	}
	ws[who] = mode
	w.n++
	if mode&recursive != 0 {
		w.recursive[len(path)]++
	}
	ps := w.byWatcher[who]
	if ps == nil {
		ps = map[string]struct{}{}
		w.byWatcher[who] = ps
	}
	ps[path] = struct{}{}
}

// forget uncounts a watch that is removed or replaced.
func (w *watchTable) forget(path string, mode watchMode) {
	w.n--
	if mode&recursive == 0 {
		return
	}
	if w.recursive[len(path)]--; w.recursive[len(path)] == 0 {
		delete(w.recursive, len(path))
	}
}

// anyMode is a watch whatever its mode.
const anyMode = oneShot | persistent | recursive

// remove takes the watches of these modes away, and reports whether there was one.
func (w *watchTable) remove(path string, who Watcher, modes watchMode) bool {
	ws := w.byPath[path]
	mode := ws[who]
	if mode&modes == 0 {
		return false
	}
	w.forget(path, mode)
	delete(ws, who)
	if rest := mode &^ modes; rest != 0 {
		w.add(path, who, rest)
		return true
	}
	if len(ws) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byWatcher[who], path)
	return true
}

// drop forgets all watches of a watcher.
func (w *watchTable) drop(who Watcher) {
	for path := range w.byWatcher[who] {
		w.remove(path, who, anyMode)
	}
	delete(w.byWatcher, who)
}

// trigger tells everybody whom an event concerns, each once, except those in skip. One-shot watches
// on its path go, also those of watchers in skip. It returns whom the event concerned.
func (w *watchTable) trigger(e Event, skip map[Watcher]struct{}) map[Watcher]struct{} {
	var concerned map[Watcher]struct{}
	add := func(who Watcher, others int) {
		if concerned == nil {
			concerned = make(map[Watcher]struct{}, others)
		}
		concerned[who] = struct{}{}
	}
	here := w.byPath[e.Path]
	for who, mode := range here {
		if mode == recursive && e.Type == wire.EventChildrenChanged {
			continue // it hears of the child itself
		}
		add(who, len(here))
		w.remove(e.Path, who, oneShot)
	}
	if len(w.recursive) > 0 && e.Type != wire.EventChildrenChanged {
		for up, ok := above(e.Path); ok; up, ok = above(up) {
			if w.recursive[len(up)] == 0 {
				continue // to look up every ancestor of a deep node takes the square of its depth
			}
			for who, mode := range w.byPath[up] {
				if mode&recursive != 0 {
					add(who, len(w.byPath[up]))
				}
			}
		}
	}
	if len(concerned) > 0 {
		w.fired.of(e.Type).Add(int64(len(concerned)))
	}
	for who := range concerned {
		if _, told := skip[who]; !told {
			who.Notify(e)
		}
	}
	return concerned
}

// above returns the parent of a path as watches know it, and whether there is one. It goes by the
// text alone: watches may be on paths that no node can have.
func above(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	switch {
	case i < 0 || path == "/":
		return "", false
	case i == 0:
		return "/", true
	}
	return path[:i], true
}

// watched answers checkWatches as servers from 3.6 to 3.8 do: whether anybody at all has a watch on
// the path. ok is false for a path that the real server stumbles over while it climbs.
func (w *watchTable) watched(path string) (found, ok bool) {
	if path == "" {
		return false, true
	}
	if !strings.Contains(path, "/") || path[0] != '/' && len(w.recursive) > 0 && len(w.byPath[path]) == 0 {
		return false, false
	}
	return len(w.byPath[path]) > 0, true
}
