package conformance

import "fmt"

func init() {
	add("removeWatches takes what it names and tells nobody", func(w *world) {
		a, b, c := w.join("A"), w.join("B"), w.join("C")
		c.do(create("~/n", "", persistent))
		for _, x := range []*client{a, b} {
			x.all(get("~/n", true), list("~/n", true))
		}
		a.all(removeWatches("~/n", typeChildren), removeWatches("~/n", typeChildren), checkWatches("~/n", typeData))
		a.all(removeWatches("~/n", typeAny), removeWatches("~/n", typeAny))
		c.all(set("~/n", "x", -1), create("~/n/k", "", persistent))
		b.fence()
		a.fence()
	})
	for _, kind := range []int32{typeChildren, typeData, typeAny} {
		for _, mode := range []int32{modePersistent, modeRecursive} {
			add(fmt.Sprintf("a watch of mode %d without its kind %d", mode, kind), func(w *world) {
				a, b := w.join("A"), w.join("B")
				b.do(create("~/n", "", persistent))
				a.all(addWatch("~/n", mode), removeWatches("~/n", kind))
				tour(b, a)
				a.all(checkWatches("~/n", typeChildren), checkWatches("~/n", typeData))
				a.all(addWatch("~/n", mode), removeWatches("~/n", typeAny), removeWatches("~/n", typeAny))
				tour(b, a)
			})
		}
	}
	add("a watch on a missing node is a data watch", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(exists("~/n", true), checkWatches("~/n", typeChildren), checkWatches("~/n", typeData), checkWatches("~/n", typeAny),
			removeWatches("~/n", typeChildren), removeWatches("~/n", typeData), removeWatches("~/n", typeData))
		b.do(create("~/n", "", persistent))
		a.fence()
		a.all(checkWatches("~/n", typeAny))
	})
	add("a watch that has fired is gone, a persistent one is not", func(w *world) {
		a := w.join("A")
		a.all(create("~/n", "", persistent), get("~/n", true), set("~/n", "x", -1), removeWatches("~/n", typeData),
			addWatch("~/n", modePersistent), set("~/n", "x", -1), checkWatches("~/n", typeData), removeWatches("~/n", typeData),
			removeWatches("~/n", typeChildren))
	})
	add("checkWatches finds the watches of others too", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(exists("~/n", true), addWatch("~/p", modePersistent), addWatch("~/r", modeRecursive))
		for _, p := range []string{"~/n", "~/p", "~/r", "~/r/below", "~"} {
			for _, kind := range []int32{typeChildren, typeData, typeAny} {
				a.all(checkWatches(p, kind), removeWatches(p, kind))
			}
		}
		b.all(checkWatches("~/r/below", typeAny), removeWatches("~/r/below", typeAny))
	})
	add("types that do not exist", func(w *world) {
		a := w.join("A")
		a.all(addWatch("~/n", modePersistent))
		for _, kind := range []int32{0, typePersistent, typeRecursive, -1, 1 << 30} {
			a.all(checkWatches("~/n", kind), removeWatches("~/n", kind))
		}
	})
	add("checkWatches stumbles over paths without a slash", func(w *world) {
		a := w.join("A")
		paths := []string{"", "abc", "a/b", "a/", "/", "//", null}
		for _, p := range paths {
			a.all(checkWatches(p, typeAny))
		}
		a.do(addWatch("~/r", modeRecursive))
		for _, p := range paths {
			a.all(checkWatches(p, typeAny), checkWatches(p, typeData), checkWatches(p, typeChildren))
		}
	})
}
