package conformance

func init() {
	add("closing a session fires for each of its ephemerals", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(create("~/n", "", persistent), create("~/n/e", "", ephemeral), create("~/f", "", ephemeral), create("~/g", "", ephemeralSeq))
		b.all(exists("~/n/e", true), get("~/f", true), list("~/n", true), list("~", true))
		a.close()
		b.fence()
		b.do(list("~", false))
	})
	add("a persistent and a recursive watch see a session end", func(w *world) {
		a, b, c := w.join("A"), w.join("B"), w.join("C")
		b.do(addWatch("~", modePersistent))
		c.do(addWatch("~", modeRecursive))
		a.all(create("~/n", "", persistent), create("~/n/e", "", ephemeral))
		a.close()
		b.fence()
		c.fence()
	})
	add("who closes its session hears of its own ephemerals before the answer", func(w *world) {
		a := w.join("A")
		a.all(create("~/e", "", ephemeral), get("~/e", true), list("~", true))
		a.close()
	})
	add("who closes its session hears through a recursive watch too", func(w *world) {
		a := w.join("A")
		a.all(addWatch("~", modeRecursive), create("~/e", "", ephemeral))
		a.close()
	})
	addAs(shared, "an expired session fires for its ephemerals", func(w *world) {
		a, b := w.dial("A"), w.join("B")
		a.greet(hello{timeout: brief})
		a.all(create("~/n", "", persistent), create("~/n/e", "", ephemeral))
		b.all(get("~/n/e", true), list("~/n", true), addWatch("~", modeRecursive))
		a.drop()
		a.session.closed = true
		b.event()
		b.event()
		b.fence()
	})
}

func init() {
	addAs(shared, "watches of an expired session are gone", func(w *world) {
		a, b := w.dial("A"), w.join("B")
		a.greet(hello{timeout: brief})
		a.all(exists("~/n", true), addWatch("~/r", modeRecursive))
		b.do(exists("~/gone", true))
		a.do(create("~/gone", "", ephemeral))
		b.event()
		b.do(exists("~/gone", true))
		a.session.closed = true
		b.event() // a stays silent, and its connection open
		a.ended()
		b.all(checkWatches("~/n", typeAny), checkWatches("~/r", typeAny))
	})
	add("deleted together in one multi, ephemerals fire in its order", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(addWatch("~", modeRecursive))
		a.all(create("~/a", "", ephemeral), create("~/b", "", ephemeral), multi(remove("~/b", -1), remove("~/a", -1)))
		b.fence()
	})
	add("who may not read loses an ordinary watch without an event", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(auth("digest", "u:p"))
		secret := []grant{{permAll, "auth", ""}}
		a.all(exists("~/n", true), list("~", true))
		b.do(createACL("~/n", "", persistent, secret))
		a.fence()
		a.all(checkWatches("~/n", typeAny), exists("~/n", true))
		b.do(set("~/n", "x", -1))
		a.fence()
		a.do(checkWatches("~/n", typeAny))
		a.do(exists("~/n", true))
		b.do(remove("~/n", -1))
		a.fence()
	})
	add("a permission that is given later counts for the event", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(auth("digest", "u:p"))
		b.do(createACL("~/n", "", persistent, []grant{{permAll, "auth", ""}}))
		a.all(exists("~/n", true), auth("digest", "u:p"))
		b.do(set("~/n", "x", -1))
		a.fence()
		a.do(get("~/n", true))
		b.all(setACL("~/n", -1, grant{permAll &^ permRead, "auth", ""}), set("~/n", "y", -1))
		a.fence()
		a.do(exists("~/n", true))
		b.do(remove("~/n", -1))
		a.fence()
	})
}
