package watch

import (
	"strings"

	"github.com/go-menagerie/menagerie/internal/zkserver/wire"
)

// Watcher receives watch events; a connection is one. acl is that of the node in question: who may
// not read it is not told, and still loses the watch (the real server since 3.8.4, and Debian's
// 3.8.0).
type Watcher interface {
	Notify(t wire.EventType, path string, acl []wire.ACL)
}

// watchMode says how long a watch lives and what it sees.
type watchMode uint8

const (
	oneShot    watchMode = iota // goes with its first event
	persistent                  // stays
	recursive                   // stays, and sees everything below its path too
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

// watchTable keeps watches, by path and by watcher. A watcher is at most once on a path: as in a 3.8
// server, the mode in which it asked last replaces the one before, so that an ordinary
// getData with a watch turns a persistent watch into one that goes with its next event.
type watchTable struct {
	byPath map[string]map[Watcher]watchMode
	// byWatcher has an entry for whoever has ever had a watch here, until drop: the
	// real server counts those when it reports how many connections watch.
	byWatcher map[Watcher]map[string]struct{}
	fired     *firings
	n         int         // watches
	recursive map[int]int // how many recursive ones there are on paths of each length
}

func newWatchTable(f *firings) *watchTable {
	return &watchTable{byPath: map[string]map[Watcher]watchMode{}, byWatcher: map[Watcher]map[string]struct{}{}, recursive: map[int]int{}, fired: f}
}

func (w *watchTable) add(path string, who Watcher, mode watchMode) {
	ws := w.byPath[path]
	if ws == nil {
		ws = map[Watcher]watchMode{}
		w.byPath[path] = ws
	}
	if old, dup := ws[who]; dup {
		w.forget(path, old)
	}
	ws[who] = mode
	w.n++
	if mode == recursive {
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
	if mode != recursive {
		return
	}
	if w.recursive[len(path)]--; w.recursive[len(path)] == 0 {
		delete(w.recursive, len(path))
	}
}

// remove takes one watch away, whatever its mode, and reports whether there was one.
func (w *watchTable) remove(path string, who Watcher) bool {
	ws := w.byPath[path]
	mode, ok := ws[who]
	if !ok {
		return false
	}
	w.forget(path, mode)
	delete(ws, who)
	if len(ws) == 0 {
		delete(w.byPath, path)
	}
	delete(w.byWatcher[who], path)
	return true
}

// drop forgets all watches of a watcher.
func (w *watchTable) drop(who Watcher) {
	for path := range w.byWatcher[who] {
		w.remove(path, who)
	}
	delete(w.byWatcher, who)
}

// trigger tells everybody whom an event at path concerns, each once, except those in skip. One-shot watches
// on the path go, also those of watchers in skip. It returns whom the event concerned.
func (w *watchTable) trigger(t wire.EventType, path string, acl []wire.ACL, skip map[Watcher]struct{}) map[Watcher]struct{} {
	var concerned map[Watcher]struct{}
	add := func(who Watcher, others int) {
		if concerned == nil {
			concerned = make(map[Watcher]struct{}, others)
		}
		concerned[who] = struct{}{}
	}
	here := w.byPath[path]
	for who, mode := range here {
		if mode == recursive && t == wire.EventChildrenChanged {
			continue // it hears of the child itself
		}
		add(who, len(here))
		if mode == oneShot {
			w.remove(path, who)
		}
	}
	if len(w.recursive) > 0 && t != wire.EventChildrenChanged {
		for up, ok := above(path); ok; up, ok = above(up) {
			if w.recursive[len(up)] == 0 {
				continue // to look up every ancestor of a deep node takes the square of its depth
			}
			for who, mode := range w.byPath[up] {
				if mode == recursive {
					add(who, len(w.byPath[up]))
				}
			}
		}
	}
	if len(concerned) > 0 {
		w.fired.of(t).Add(int64(len(concerned)))
	}
	for who := range concerned {
		if _, told := skip[who]; !told {
			who.Notify(t, path, acl)
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

// watched answers checkWatches, as a 3.8 server does: whether anybody at all has a watch on
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
