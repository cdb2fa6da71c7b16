package conformance

func none() []string { return nil }

func init() {
	add("setWatches fires what has changed since the client was there", func(w *world) {
		a, b := w.join("A"), w.join("B")
		for _, p := range []string{"~/d0", "~/d1", "~/d2", "~/e0", "~/c0", "~/c1", "~/c2", "~/c3"} {
			a.do(create(p, "", persistent))
		}
		a.do(create("~/c3/k", "", persistent))
		seen := a.seen
		a.drop()
		b.all(set("~/d1", "x", -1), remove("~/d2", -1), create("~/c1/k", "", persistent), remove("~/c2", -1), remove("~/c3/k", -1))
		again := w.resume("A", a.session, seen)
		again.do(setWatches(seen, []string{"~/d0", "~/d1", "~/d2"}, []string{"~/e0", "~/e1"}, []string{"~/c0", "~/c1", "~/c2", "~/c3"}))
		b.all(set("~/d0", "x", -1), set("~/d1", "y", -1), create("~/e1", "", persistent), create("~/c0/k", "", persistent),
			create("~/c1/kk", "", persistent))
	})
	add("setWatches2 brings persistent watches back, without what they have missed", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(create("~/n", "", persistent), create("~/r", "", persistent), addWatch("~/n", modePersistent), addWatch("~/r", modeRecursive))
		seen := a.seen
		a.drop()
		b.all(set("~/n", "x", -1), create("~/n/k", "", persistent), create("~/r/k", "", persistent), remove("~/n/k", -1))
		again := w.resume("A", a.session, seen)
		again.do(setWatches2(seen, none(), none(), none(), []string{"~/n", "~/lost"}, []string{"~/r"}))
		b.all(create("~/n/k", "", persistent), set("~/r/k", "", -1), create("~/lost", "", persistent), remove("~/r/k", -1), remove("~/r", -1))
		again.fence()
		b.all(create("~/r", "", persistent))
	})
	add("in setWatches2 the recursive list wins, then the persistent one", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/n", "", persistent))
		a.do(setWatches2(1<<60, []string{"~/n"}, none(), []string{"~/n"}, []string{"~/n"}, none()))
		tour(b, a)
		a.do(setWatches2(1<<60, []string{"~/n"}, none(), []string{"~/n"}, []string{"~/n"}, []string{"~/n"}))
		tour(b, a)
		a.do(setWatches2(1<<60, []string{"~/n"}, none(), none(), none(), none()))
		tour(b, a)
	})
	add("setWatches goes by the zxid that it is given", func(w *world) {
		a := w.join("A")
		a.all(create("~/n", "", persistent), create("~/n/k", "", persistent), set("~/n", "x", -1))
		for _, since := range []int64{a.seen - 3, a.seen - 2, a.seen - 1, a.seen, a.seen + 1, 0, -1, 1 << 62} {
			a.do(setWatches(since, []string{"~/n"}, none(), []string{"~/n"}))
			a.all(removeWatches("~/n", typeData), removeWatches("~/n", typeChildren))
			a.do(setWatches2(since, []string{"~/n"}, none(), []string{"~/n"}, none(), none()))
			a.all(removeWatches("~/n", typeData), removeWatches("~/n", typeChildren))
		}
	})
	add("a deleted child is a change of the children since then", func(w *world) {
		a := w.join("A")
		a.all(create("~/n", "", persistent), create("~/n/k", "", ephemeral))
		before := a.seen
		a.do(remove("~/n/k", -1))
		a.do(setWatches(before, []string{"~/n"}, none(), []string{"~/n"}))
	})
}

func init() {
	add("the events of setWatches are not asked for permission", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(auth("digest", "u:p"))
		b.do(createACL("~/n", "", persistent, []grant{{permAll, "auth", ""}}))
		a.do(setWatches(0, []string{"~/n"}, []string{"~/n"}, []string{"~/n"}))
		a.do(setWatches(1<<60, []string{"~/n"}, none(), []string{"~/n"}))
		b.all(set("~/n", "x", -1), create("~/n/k", "", persistent))
		a.fence()
		a.do(checkWatches("~/n", typeAny))
	})
	add("setWatches of paths that no node can have", func(w *world) {
		a := w.join("A")
		odd := []string{"", "abc", "/a/", "//"}
		a.do(setWatches(0, odd, none(), none()))
		a.do(setWatches(0, none(), odd, none()))
		a.do(setWatches(1<<60, none(), none(), odd))
		a.do(setWatches2(0, none(), none(), none(), odd, odd))
		for _, p := range odd {
			a.do(removeWatches(p, typeAny))
		}
	})
	add("lists of watches that lie about their length", func(w *world) {
		a := w.join("A")
		lists := func(r *record) { r.i64(1 << 60).paths([]string{"~"}).paths([]string{"~/x"}).paths(nil).paths(nil) }
		a.all(
			malformed(105, "too long", func(r *record) { lists(r); r.i32(70_000_000) }),
			malformed(105, "missing", lists),
			malformed(105, "half a string", func(r *record) { lists(r); r.i32(1).i32(9).raw("/ab") }),
			checkWatches("~", typeAny), checkWatches("~/x", typeAny),
			malformed(105, "negative", func(r *record) { lists(r); r.i32(-7) }),
			removeWatches("~", typeAny), removeWatches("~/x", typeAny),
			malformed(101, "more than needed", lists),
			removeWatches("~", typeAny), removeWatches("~/x", typeAny),
			malformed(101, "empty", func(*record) {}), malformed(105, "of setWatches", func(r *record) { r.i64(0).paths(nil).paths(nil).paths(nil) }),
		)
	})
	add("watches go with the connection", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/n", "", persistent))
		a.all(get("~/n", true), list("~/n", true), addWatch("~", modeRecursive), addWatch("~/n", modePersistent))
		seen := a.seen
		a.drop()
		again := w.resume("A", a.session, seen)
		tour(b, again)
		again.all(removeWatches("~/n", typeAny), removeWatches("~", typeAny))
	})
	add("a session that moves leaves its watches behind", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/n", "", persistent))
		a.all(get("~/n", true), addWatch("~", modeRecursive))
		again := w.resume("A2", a.session, a.seen)
		a.ended()
		b.all(set("~/n", "x", -1), create("~/n/k", "", persistent))
		again.fence()
		again.all(get("~/n", true), set("~/n", "y", -1))
	})
}
