package conformance

func init() {
	// Each way to watch, and each change.
	watches := []struct {
		name string
		op   op
	}{
		{"exists", exists("~/p/n", true)}, {"getData", get("~/p/n", true)}, {"getChildren", list("~/p/n", true)}, {"getChildren2", list2("~/p/n", true)},
		{"exists of a child", exists("~/p/n/c", true)}, {"getChildren of the parent", list("~/p", true)}, {"getData of the parent", get("~/p", true)},
	}
	for _, watch := range watches {
		add("what fires a watch of "+watch.name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			a.do(create("~/p", "", persistent))
			for _, change := range []op{
				create("~/p/n", "", persistent), set("~/p/n", "x", -1), setACL("~/p/n", -1, open...), create("~/p/n/c", "", persistent), set("~/p/n/c", "x", -1),
				create("~/p/n/c/d", "", persistent), remove("~/p/n/c/d", -1), remove("~/p/n/c", -1), set("~/p", "x", -1), set("~/p/n", "x", 77), create("~/p/n", "", persistent),
				syncOf("~/p/n"), multi(check("~/p/n", -1)), multi(set("~/p/n", "y", -1), check("~/p/n", 0)), remove("~/p/n", -1), create("~/p/n", "", ephemeral),
			} {
				b.do(watch.op)
				a.do(change)
				b.fence()
			}
			a.close()
			b.fence()
		})
	}
	add("a watch fires once", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(create("~/n", "", persistent))
		b.all(get("~/n", true), get("~/n", true), exists("~/n", true))
		a.all(set("~/n", "1", -1), set("~/n", "2", -1))
		b.fence()
	})
	add("a watch of one's own fires before the answer to the change", func(w *world) {
		w.join("A").all(create("~/n", "", persistent), get("~/n", true), list("~", true), list("~/n", true), set("~/n", "x", -1), get("~/n", true), create("~/m", "", persistent),
			create("~/n/c", "", ephemeral), list("~/n", true), remove("~/n/c", -1), list("~", true), remove("~/n", -1))
	})
	add("a watch fires before the answer to a read that shows the change", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(create("~/n", "", persistent))
		b.all(get("~/n", true), list("~", true))
		a.all(set("~/n", "x", -1), create("~/m", "", persistent))
		b.all(get("~/n", false), list("~", false))
	})
	add("data and child watch of a node that is removed: one event", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(create("~/n", "", persistent))
		b.all(get("~/n", true), list("~/n", true), list("~", true))
		a.do(remove("~/n", -1))
		b.fence()
	})
	add("data and child watch of a node that is removed: both are gone when it is made again", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(create("~/n", "", persistent))
		b.all(get("~/n", true), list("~/n", true))
		a.all(remove("~/n", -1), create("~/n", "", persistent), create("~/n/c", "", persistent), set("~/n", "", -1))
		b.fence()
		b.all(checkWatches("~/n", typeChildren), checkWatches("~/n", typeData))
	})
	add("a child watch of a node that is removed and made again", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(create("~/n", "", persistent))
		b.do(list("~/n", true))
		a.all(remove("~/n", -1), create("~/n", "", persistent), create("~/n/c", "", persistent))
		b.fence()
	})
}

func init() {
	add("a read that fails sets no watch, but exists does", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(get("~/n", true), list("~/n", true), list2("~/n", true))
		a.do(create("~/n", "", persistent))
		b.fence()
		b.do(exists("~/m", true))
		a.all(create("~/m", "", persistent), set("~/m", "", -1))
		b.fence()
	})
	add("a read that is denied sets no watch, but exists does", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(auth("digest", alice), createACL("~/n", "", persistent, []grant{{permAll, "digest", aliceID}}))
		b.all(get("~/n", true), list("~/n", true))
		a.all(setACL("~/n", -1, anyone(permAll)), set("~/n", "x", -1), create("~/n/c", "", persistent))
		b.do(exists("~/n", true))
		a.do(set("~/n", "y", -1))
		b.fence()
	})
	add("watches of paths that are not valid", func(w *world) {
		a := w.join("A")
		a.all(exists("x", true), exists("~/", true), exists("~//n", true), create("~/n", "", persistent))
	})
	add("every watcher of a node is told", func(w *world) {
		a, b, c, d := w.join("A"), w.join("B"), w.join("C"), w.join("D")
		for _, x := range []*client{b, c, d} {
			x.all(exists("~/n", true), list("~", true))
		}
		a.do(create("~/n", "", persistent))
		for _, x := range []*client{b, c, d} {
			x.fence()
		}
	})
	add("one-shot watches go with the connection", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(create("~/n", "", persistent))
		b.all(get("~/n", true), list("~", true))
		b.drop()
		c := w.resume("C", b.session, b.seen)
		a.all(set("~/n", "x", -1), create("~/m", "", persistent))
		c.fence()
	})
	add("watches go with the session", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(get("~", true), list("~", true), create("~/e", "", ephemeral), get("~/e", true), list("~", true))
		b.close()
		a.all(set("~", "x", -1), list("~", false))
	})
	add("a session that ends tells others of its nodes, in order", func(w *world) {
		a, b := w.join("A"), w.join("B")
		for _, n := range []string{"~/one", "~/two", "~/three", "~/four", "~/five"} {
			b.do(create(n, "", ephemeral))
			a.do(exists(n, true))
		}
		a.do(list("~", true))
		b.close()
		a.do(list2("~", false))
	})
}

func init() {
	add("fifty watches fire in the order of the changes", func(w *world) {
		a, b := w.join("A"), w.join("B")
		for range 50 {
			a.do(create("~/n-", "", sequential))
		}
		for i := range 50 {
			b.do(get(numberedNode(i), true))
		}
		for i := range 50 {
			a.do(set(numberedNode(49-i), "x", -1))
		}
		b.fence()
	})
	setWatchesScenarios()
}

func numberedNode(i int) string {
	return "~/n-00000000" + string(rune('0'+i/10)) + string(rune('0'+i%10))
}

// After a reconnect: each kind of watch, and each thing that may have happened meanwhile.
func setWatchesScenarios() {
	for _, change := range []struct {
		name string
		ops  []op
	}{
		{"nothing", nil},
		{"setData", []op{set("~/n", "x", -1)}},
		{"setACL", []op{setACL("~/n", -1, open...)}},
		{"create of a child", []op{create("~/n/c", "", persistent)}},
		{"create and delete of a child", []op{create("~/n/c", "", persistent), remove("~/n/c", -1)}},
		{"delete", []op{remove("~/n", -1)}},
		{"delete and create", []op{remove("~/n", -1), create("~/n", "", persistent)}},
		{"create of the one that is missing", []op{create("~/m", "", persistent)}},
		{"create and delete of the one that is missing", []op{create("~/m", "", persistent), remove("~/m", -1)}},
		{"loss of the right to read", []op{setACL("~/n", -1, grant{permAll, "digest", aliceID}), set("~/n", "x", -1)}},
	} {
		add("setWatches after a reconnect, meanwhile: "+change.name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			a.all(auth("digest", alice), create("~/n", "", persistent))
			b.all(get("~/n", true), list("~/n", true), exists("~/m", true))
			seen := b.seen
			b.drop()
			a.all(change.ops...)
			c := w.resume("C", b.session, seen)
			c.do(setWatches(seen, []string{"~/n"}, []string{"~/m"}, []string{"~/n"}))
			c.fence()
			a.all(exists("~/n", false), create("~/n/d", "", persistent), set("~/n", "y", -1), create("~/m", "", persistent), set("~/m", "", -1), remove("~/n/d", -1), remove("~/n", -1))
			c.fence()
		})
	}
	add("setWatches of nothing", func(w *world) {
		a := w.join("A")
		a.all(setWatches(0, nil, nil, nil), setWatches(a.seen, nil, nil, nil), setWatches(1<<60, nil, nil, nil))
	})
	add("setWatches on a list in each wrong place", func(w *world) {
		a := w.join("A")
		a.all(create("~/n", "", persistent), setWatches(a.seen, []string{"~/m"}, []string{"~/n"}, []string{"~/m"}), set("~/n", "", -1), create("~/m", "", persistent))
	})
	add("setWatches of paths that are not valid", func(w *world) {
		a := w.join("A")
		a.all(setWatches(a.seen, []string{"", "x", "~/"}, []string{"", "x", "~//"}, []string{"", "x"}), create("~/n", "", persistent))
	})
	add("setWatches of many, in order", func(w *world) {
		a := w.join("A")
		a.all(create("~/a", "", persistent), create("~/b", "", persistent), create("~/c", "", persistent))
		a.do(setWatches(1, []string{"~/c", "~/x", "~/a", "~/c"}, []string{"~/b", "~/y", "~/a"}, []string{"~/b", "~/c", "~/z", "~"}))
		a.all(create("~/x", "", persistent), create("~/y", "", persistent), create("~/z", "", persistent), set("~/a", "", -1))
	})
	add("setWatches under the xid that clients use", func(w *world) {
		a := w.join("A")
		a.do(create("~/a", "", persistent))
		a.await(a.sendAs(-8, setWatches(a.seen, []string{"~/a"}, nil, nil)))
		a.do(set("~/a", "", -1))
	})
}
