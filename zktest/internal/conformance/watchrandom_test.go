package conformance

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zktest/internal/access"
)

// A random program is a list of steps of three clients on a few nodes, among them a restricted one.
// After each step every client takes in what it hears of it.

type watchStep struct {
	who  int
	what func(w *world, c *client) *client // returns who the client is afterwards
}

var watchedPaths = []string{"~", "~/a", "~/a/b", "~/a/b/c", "~/s", "~/s/x", "~/none/below"}

func drawWatchStep(t *rapid.T) watchStep {
	path := rapid.SampledFrom(watchedPaths).Draw(t, "path")
	other := rapid.SampledFrom(watchedPaths).Draw(t, "other")
	flags := rapid.SampledFrom([]int32{persistent, persistent, ephemeral}).Draw(t, "flags")
	mode := rapid.SampledFrom([]int32{modePersistent, modeRecursive, modeRecursive, 2}).Draw(t, "mode")
	kind := rapid.Int32Range(0, 4).Draw(t, "kind")
	back := rapid.Int64Range(0, 12).Draw(t, "back")
	list1 := rapid.SliceOfN(rapid.SampledFrom(watchedPaths), 0, 3).Draw(t, "list")
	list2s := rapid.SliceOfN(rapid.SampledFrom(watchedPaths), 0, 3).Draw(t, "list2")
	do := func(o op) func(*world, *client) *client {
		return func(_ *world, c *client) *client {
			c.do(o)
			return c
		}
	}
	secret := []grant{{permAll, "digest", access.Digest("u:p")}}
	steps := map[string]func(*world, *client) *client{
		"exists": do(exists(path, true)), "get": do(get(path, true)), "list": do(list(path, true)), "list2": do(list2(path, true)),
		"addWatch": do(addWatch(path, mode)), "addWatch2": do(addWatch(other, mode)),
		"remove": do(removeWatches(path, kind)), "check": do(checkWatches(path, kind)),
		"create": do(create(path, "", flags)), "create2": do(create(other, "", flags)), "delete": do(remove(path, -1)), "set": do(set(path, "x", -1)),
		"secret": do(createACL("~/s", "", persistent, secret)), "hide": do(setACL(path, -1, secret...)),
		"multi":   do(multi(create(path, "", flags), set(other, "y", -1), remove(path, -1))),
		"multi2":  do(multi(set(path, "z", -1), create(other, "", flags))),
		"restore": restoring(back, list1, list2s),
		"resume": func(w *world, c *client) *client {
			c.drop()
			again := w.resume(c.name, c.session, c.seen)
			return restoring(back, list1, list2s)(w, again)
		},
		"again": func(w *world, c *client) *client {
			c.close()
			return w.join(c.name)
		},
	}
	name := rapid.SampledFrom(sortedKeys(steps)).Draw(t, "step")
	return watchStep{who: rapid.IntRange(0, 2).Draw(t, "who"), what: steps[name]}
}

// restoring sends what a client sends after it has missed the last few transactions.
func restoring(back int64, lists, more []string) func(*world, *client) *client {
	return func(_ *world, c *client) *client {
		since := c.seen - back
		if back%2 == 0 {
			c.do(setWatches(since, lists, more, lists))
		} else {
			c.do(setWatches2(since, lists, more, lists, more, lists))
		}
		return c
	}
}

func TestRandomProgramsOfWatchesHearTheSameOnBothServers(t *testing.T) {
	t.Parallel()
	real, own := startReal(t, settings{}), startOwn(t, settings{})
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(drawWatchStep), 10, 30).Draw(rt, "program")
		n++
		base := fmt.Sprintf("/w%06d", n)
		run := func(w *world) {
			clients := []*client{w.join("A"), w.join("B"), w.join("C")}
			for _, s := range steps {
				clients[s.who] = s.what(w, clients[s.who])
				for _, c := range clients {
					c.fence()
				}
			}
			w.ask("mntr", "watch_count")
			w.ask("wchp")
		}
		if diff := difference(transcript(t, real, base, true, run), transcript(t, own, base, true, run)); diff != "" {
			rt.Fatal(diff)
		}
	})
	compared.programs.Add(int64(n))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
