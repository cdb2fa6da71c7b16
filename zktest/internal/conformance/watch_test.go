package conformance

import "fmt"

// changes are all kinds of changes to a node, its children and what is below them.
func changes() []op {
	return []op{
		set("~/n", "1", -1), set("~/n", "2", -1), setACL("~/n", -1, open...),
		create("~/n/k", "", persistent), create("~/n/k/g", "", persistent), set("~/n/k", "", -1),
		remove("~/n/k/g", -1), remove("~/n/k", -1), remove("~/n", -1), create("~/n", "", persistent),
	}
}

// tour makes all kinds of changes, and lets the watcher see each before the next.
func tour(by, watcher *client) {
	for _, o := range changes() {
		by.do(o)
		watcher.fence()
	}
}

func init() {
	for _, o := range []op{exists("~/n", true), get("~/n", true), list("~/n", true), list2("~/n", true)} {
		add("a watch by "+o.name+" fires once, for what it watches", func(w *world) {
			a, b := w.join("A"), w.join("B")
			b.do(create("~/n", "", persistent))
			a.do(o)
			tour(b, a)
			a.do(o)
			b.do(remove("~/n", -1))
			a.fence()
			a.do(o)
			b.do(create("~/n", "", persistent))
		})
	}
	add("the events of one change come in the order data, children, parent", func(w *world) {
		a := w.join("A")
		a.all(create("~/n", "", persistent), get("~/n", true), list("~/n", true), list("~", true), exists("~/n", true))
		a.all(remove("~/n", -1), create("~/n", "", persistent))
	})
	add("an event comes before the reply of the change and before later reads", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(create("~/n", "", persistent))
		a.do(get("~/n", true))
		x := a.send(get("~/n", false))
		a.await(x)
		b.do(set("~/n", "x", -1))
		a.do(get("~/n", false))
		a.all(get("~/n", true), set("~/n", "y", -1), get("~/n", false))
	})
	add("who watches twice is told once", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/n", "", persistent))
		a.all(get("~/n", true), get("~/n", true), exists("~/n", true), list("~/n", true), list2("~/n", true))
		tour(b, a)
	})
	add("failed reads leave no watch but that of exists", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(get("~/n", true), list("~/n", true), list2("~/n", true))
		b.do(create("~/n", "", persistent))
		a.fence()
		b.all(remove("~/n", -1))
		a.do(exists("~/n", true))
		b.do(create("~/n", "", persistent))
	})
	add("reads inside a multiRead do not watch", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/n", "", persistent))
		a.do(multiRead(get("~/n", true), list("~/n", true)))
		tour(b, a)
	})
}

func init() {
	add("a change of data does not fire the watches of children, nor of the parent", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(create("~/n", "", persistent), create("~/n/k", "", persistent))
		a.all(list("~/n", true), get("~", true), list("~", true))
		b.all(set("~/n", "x", -1), set("~/n/k", "x", -1), setACL("~/n", -1, open...), create("~/n/k/g", "", persistent))
	})
	add("requests that fail fire nothing", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(create("~/n", "", persistent), create("~/n/k", "", persistent))
		a.all(get("~/n", true), list("~/n", true), addWatch("~", modeRecursive))
		b.all(set("~/n", "x", 7), remove("~/n", -1), create("~/n", "", persistent), remove("~/n/none", -1), check("~/n", 3),
			multi(set("~/n", "x", -1), create("~/n/y", "", persistent), check("~/none", 0)))
	})
	add("a multi fires its watches part by part", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/n", "", persistent))
		a.all(get("~/n", true), list("~/n", true), exists("~/m", true), list("~", true))
		b.do(multi(create("~/m", "", persistent), set("~/n", "x", -1), create("~/n/k", "", persistent), remove("~/n/k", -1), remove("~/m", -1)))
		a.fence()
		a.all(addWatch("~", modeRecursive), addWatch("~/n", modePersistent))
		a.do(multi(create("~/m", "", persistent), set("~/n", "x", -1), create("~/n/k", "", persistent), remove("~/n/k", -1), remove("~/m", -1)))
	})
	addAs(owning, "the root can be watched", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(get("/", true), list("/", true), exists("/", true))
		b.all(set("/", "", -1), create("/watchroot", "", persistent), remove("/watchroot", -1))
		a.fence()
		a.all(addWatch("/", modePersistent))
		b.all(set("/", "", -1), create("/watchroot", "", persistent), create("/watchroot/x", "", persistent))
		a.fence()
		a.all(addWatch("/", modeRecursive))
		b.all(set("/", "", -1), remove("/watchroot/x", -1), remove("/watchroot", -1))
		a.fence()
		a.do(removeWatches("/", typeAny))
	})
	addAs(owning, "an exists watch may be on a path that no node can have", func(w *world) {
		a := w.join("A")
		for _, p := range []string{"", "abc", "/a/", "//", "/./x", "/../y"} {
			a.do(exists(p, true))
			a.all(checkWatches(p, typeData), removeWatches(p, typeAny), removeWatches(p, typeAny))
		}
	})
	add("a thousand events keep their order", func(w *world) {
		a := w.join("A")
		a.do(addWatch("~", modeRecursive))
		for i := range 40 {
			o := []op{create(fmt.Sprintf("~/%d", i), "", persistent)}
			for range 25 {
				o = append(o, set(fmt.Sprintf("~/%d", i), "", -1))
			}
			a.do(multi(append(o, remove(fmt.Sprintf("~/%d", i), -1))...))
		}
	})
}
