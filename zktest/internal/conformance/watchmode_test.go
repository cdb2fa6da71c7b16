package conformance

func init() {
	for mode, name := range []string{modePersistent: "persistent", modeRecursive: "recursive"} {
		mode := int32(mode)
		add("a "+name+" watch hears of", func(w *world) {
			a, b := w.join("A"), w.join("B")
			b.do(create("~/n", "", persistent))
			a.do(addWatch("~/n", mode))
			tour(b, a)
			tour(b, a)
		})
		add("a "+name+" watch waits for a node that does not exist yet", func(w *world) {
			a, b := w.join("A"), w.join("B")
			a.do(addWatch("~/m/n", mode))
			b.all(create("~/m", "", persistent), create("~/m/n", "", persistent), create("~/m/n/k", "", ephemeral), create("~/m/nn", "", persistent))
			b.do(multi(remove("~/m/n/k", -1), remove("~/m/n", -1)))
		})
		add("a "+name+" watch asks for no permission, its events do", func(w *world) {
			a, b := w.join("A"), w.join("B")
			b.do(auth("digest", "u:p"))
			b.do(createACL("~/n", "", persistent, []grant{{permAll, "auth", ""}}))
			a.all(addWatch("~/n", mode), get("~/n", false))
			b.all(set("~/n", "x", -1), createACL("~/n/open", "", persistent, open), create("~/n/k", "", persistent),
				set("~/n/open", "x", -1), remove("~/n/k", -1), setACL("~/n", -1, open...), set("~/n", "y", -1),
				remove("~/n/open", -1), remove("~/n", -1))
			a.fence()
			a.all(removeWatches("~/n", typeAny))
		})
	}
	for _, c := range []struct {
		name string
		set  []op
	}{
		{"persistent then getData", []op{addWatch("~/n", modePersistent), get("~/n", true)}},
		{"persistent then getChildren", []op{addWatch("~/n", modePersistent), list("~/n", true)}},
		{"persistent then exists", []op{addWatch("~/n", modePersistent), exists("~/n", true)}},
		{"recursive then getData", []op{addWatch("~/n", modeRecursive), get("~/n", true)}},
		{"recursive then getChildren", []op{addWatch("~/n", modeRecursive), list("~/n", true)}},
		{"getData and getChildren then persistent", []op{get("~/n", true), list("~/n", true), addWatch("~/n", modePersistent)}},
		{"getData and getChildren then recursive", []op{get("~/n", true), list("~/n", true), addWatch("~/n", modeRecursive)}},
		{"persistent then recursive", []op{addWatch("~/n", modePersistent), addWatch("~/n", modeRecursive)}},
		{"recursive then persistent", []op{addWatch("~/n", modeRecursive), addWatch("~/n", modePersistent)}},
		{"recursive then persistent then getChildren", []op{addWatch("~/n", modeRecursive), addWatch("~/n", modePersistent), list("~/n", true)}},
	} {
		add("on one path, "+c.name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			b.do(create("~/n", "", persistent))
			a.all(c.set...)
			tour(b, a)
			a.all(checkWatches("~/n", typeChildren), checkWatches("~/n", typeData), removeWatches("~/n", typeChildren), removeWatches("~/n", typeData))
		})
	}
}

func init() {
	add("one event for nested watches of one client", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(create("~/n", "", persistent), create("~/n/k", "", persistent))
		a.all(addWatch("~", modeRecursive), addWatch("~/n", modeRecursive), addWatch("~/n/k", modePersistent),
			get("~/n/k", true), list("~/n/k", true), exists("~/n/k/g", true), addWatch("~/n/k/g", modeRecursive))
		b.all(create("~/n/k/g", "", persistent), set("~/n/k", "", -1), remove("~/n/k/g", -1), remove("~/n/k", -1), remove("~/n", -1))
	})
	add("an ordinary watch above does not hear of what is below, a recursive one beside it does", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/n", "", persistent))
		a.all(get("~", true), list("~", true), addWatch("~/n", modeRecursive))
		b.all(create("~/n/k", "", persistent), create("~/m", "", persistent), create("~/m/k", "", persistent), set("~", "", -1))
	})
	add("unknown modes and bodies that are too short", func(w *world) {
		a := w.join("A")
		for _, m := range []int32{2, 3, -1, 1 << 30, -1 << 31} {
			a.do(addWatch("~/n", m))
		}
		for _, code := range []int32{106, 17, 18} {
			a.all(malformed(code, "empty", func(*record) {}), malformed(code, "no number", func(r *record) { r.str("/n") }),
				malformed(code, "half a path", func(r *record) { r.i32(9).raw("/n") }),
				malformed(code, "more than needed", func(r *record) { r.path("~/n").i32(1).i64(7) }))
		}
		a.all(checkWatches("~/n", typeAny), removeWatches("~/n", typeAny), removeWatches("~/n", typeAny))
	})
	add("a persistent watch may be on a path that no node can have", func(w *world) {
		a, b := w.join("A"), w.join("B")
		for _, p := range []string{"", "abc", "a/b", "~/", "//", "/./x"} {
			for _, m := range []int32{modePersistent, modeRecursive} {
				a.all(addWatch(p, m), checkWatches(p, typeAny))
			}
		}
		b.all(create("~/n", "", persistent), remove("~/n", -1))
		a.fence()
		for _, p := range []string{"", "abc", "a/b", "~/", "//", "/./x"} {
			a.all(removeWatches(p, typeChildren), removeWatches(p, typeAny), removeWatches(p, typeData))
		}
	})
}
