package conformance

// Operations that came with later versions of the protocol.
func init() {
	told("whoAmI", whoAmI(), auth("digest", alice), whoAmI(), auth("digest", bob), whoAmI(), auth("ip", ""), whoAmI())
	told("whoAmI with a body", malformed(107, "whoAmI", func(r *record) { r.raw("body") }), exists("~", false))
	add("getEphemerals", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(ephemerals("~"))
		for _, n := range []string{"~/one", "~/two", "~/three", "~/four", "~/five", "~/six"} {
			a.do(create(n, "", ephemeral))
		}
		a.all(create("~/p", "", persistent), create("~/p/e", "", ephemeral), create("~/px", "", ephemeral))
		b.all(create("~/p/b", "", ephemeral), ephemerals("~"))
		a.all(ephemerals("~"), ephemerals("~/p"), ephemerals("~/p/e"), ephemerals("~/x"), ephemerals("~/t"), ephemerals("~/"))
	})
	told("getEphemerals of paths that are not valid", ephemerals(""), ephemerals("x"), ephemerals("~/"), ephemerals("~//"), ephemerals(null))
	told("getEphemerals of what may not be read", create("~/n", "", persistent), create("~/n/e", "", ephemeral), setACL("~/n", -1, grant{permAll, "digest", aliceID}),
		ephemerals("~/n"), ephemerals("~"))
	told("getAllChildrenNumber", allChildren("~"), create("~/a", "", persistent), allChildren("~"), create("~/a/b", "", persistent), create("~/a/b/c", "", ephemeral),
		create("~/ab", "", persistent), allChildren("~"), allChildren("~/a"), allChildren("~/a/b/c"), allChildren("~/x"), remove("~/a/b/c", -1), allChildren("~"))
	told("getAllChildrenNumber of paths that are not valid", allChildren(""), allChildren("x"), allChildren("~/"), allChildren("~//"), allChildren(null))
	told("getAllChildrenNumber of what may not be read", create("~/n", "", persistent), create("~/n/c", "", persistent),
		setACL("~/n", -1, anyone(permAll&^permRead), grant{permAll, "digest", aliceID}), allChildren("~/n"), allChildren("~"))
	persistentWatches()
	removals()
}

func persistentWatches() {
	for mode, name := range []string{modePersistent: "persistent", modeRecursive: "recursive"} {
		mode := int32(mode)
		add("what fires a watch that is "+name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			b.do(addWatch("~/p", mode))
			for _, change := range []op{
				create("~/p", "", persistent), set("~/p", "x", -1), create("~/p/n", "", persistent), set("~/p/n", "", -1), create("~/p/n/c", "", ephemeral),
				set("~/p/n/c", "", -1), remove("~/p/n/c", -1), setACL("~/p", -1, open...), create("~/px", "", persistent), create("~/p/s-", "", sequential),
				multi(create("~/p/m", "", persistent), set("~/p/m", "", 0), remove("~/p/m", -1)), remove("~/p/n", -1), remove("~/p/s-0000000002", -1),
				remove("~/p/s-0000000001", -1), remove("~/p", -1), create("~/p", "", persistent), set("~", "", -1),
			} {
				a.do(change)
				b.fence()
			}
		})
		add("a watch together with one-shot watches, "+name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			a.do(create("~/p", "", persistent))
			b.all(addWatch("~/p", mode), get("~/p", true), list("~/p", true), list("~", true), exists("~/p/n", true))
			a.all(set("~/p", "", -1), create("~/p/n", "", persistent), remove("~/p/n", -1), remove("~/p", -1))
			b.fence()
		})
		add("a watch goes with the connection, "+name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			b.do(addWatch("~", mode))
			b.drop()
			c := w.resume("C", b.session, b.seen)
			a.do(create("~/n", "", persistent))
			c.fence()
		})
		add("who may not read is not told by a watch that is "+name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			a.all(auth("digest", alice), create("~/p", "", persistent))
			b.do(addWatch("~/p", mode))
			a.all(setACL("~/p", -1, grant{permAll, "digest", aliceID}), set("~/p", "", -1), create("~/p/open", "", persistent), set("~/p/open", "x", -1))
			b.fence()
			a.all(setACL("~/p", -1, anyone(permAll)), set("~/p", "", -1))
			b.fence()
		})
		add("setWatches2 with a watch that is "+name, func(w *world) {
			a, b := w.join("A"), w.join("B")
			a.all(create("~/p", "", persistent), create("~/p/n", "", persistent))
			b.do(addWatch("~/p", mode))
			seen := b.seen
			b.drop()
			a.all(set("~/p", "", -1), create("~/p/m", "", persistent))
			c := w.resume("C", b.session, seen)
			if mode == modePersistent {
				c.do(setWatches2(seen, nil, nil, nil, []string{"~/p"}, nil))
			} else {
				c.do(setWatches2(seen, nil, nil, nil, nil, []string{"~/p"}))
			}
			c.fence()
			a.all(set("~/p/n", "", -1), set("~/p", "", -1), remove("~/p/m", -1))
			c.fence()
		})
	}
	told("addWatch of modes that do not exist", addWatch("~", 2), exists("~", false), addWatch("~", -1), exists("~", false))
	told("addWatch of what does not exist", addWatch("~/a", modePersistent), addWatch("~/a/b", modeRecursive), create("~/a", "", persistent), create("~/a/b", "", persistent))
	told("addWatch of paths that are not valid", addWatch("", 0), addWatch("x", 1), addWatch("~/", 0), addWatch("~//", 1), create("~/n", "", persistent))
}

func init() {
	addAs(owning, "addWatch without a path", func(w *world) { // the real server never forgets this watch, which shows in its counters
		w.join("A").all(addWatch(null, 0), exists("~", false))
	})
	told("addWatch twice, first one mode and then the other", addWatch("~", modePersistent), addWatch("~", modeRecursive), create("~/a", "", persistent), set("~", "", -1))
	told("addWatch twice, the other way round", addWatch("~", modeRecursive), addWatch("~", modePersistent), create("~/a", "", persistent), set("~", "", -1))
	told("recursive watches one in the other", create("~/a", "", persistent), addWatch("~", modeRecursive), addWatch("~/a", modeRecursive), create("~/a/b", "", persistent),
		set("~/a/b", "", -1), remove("~/a/b", -1))
	told("setWatches2 of nothing", setWatches2(1, nil, nil, nil, nil, nil), exists("~", false))
	told("setWatches2 does what setWatches does", create("~/n", "", persistent), setWatches2(1, []string{"~/n", "~/x"}, []string{"~/n", "~/y"}, []string{"~/n", "~/z"}, nil, nil),
		create("~/y", "", persistent), create("~/x", "", persistent))
}

func removals() {
	kinds := []int32{typeChildren, typeData, typeAny, typePersistent, typeRecursive}
	for _, set1 := range []struct {
		name string
		op   op
	}{
		{"getData", get("~/n", true)}, {"exists", exists("~/n", true)}, {"getChildren", list("~/n", true)}, {"addWatch persistent", addWatch("~/n", modePersistent)},
		{"addWatch recursive", addWatch("~/n", modeRecursive)}, {"nothing", exists("~/n", false)},
	} {
		add("checkWatches after "+set1.name, func(w *world) {
			a := w.join("A")
			a.all(create("~/n", "", persistent), set1.op)
			for _, k := range append(kinds, 0, 6, -1) {
				a.all(checkWatches("~/n", k), checkWatches("~/m", k))
			}
			a.all(set("~/n", "", -1), create("~/n/c", "", persistent))
		})
		for i, k := range kinds {
			add("removeWatches "+[]string{"children", "data", "any", "persistent", "recursive"}[i]+" after "+set1.name, func(w *world) {
				a, b := w.join("A"), w.join("B")
				a.all(create("~/n", "", persistent), set1.op)
				b.all(set1.op)
				a.all(removeWatches("~/m", k), removeWatches("~/n", k), removeWatches("~/n", k))
				b.all(set("~/n", "", -1), create("~/n/c", "", persistent), remove("~/n/c", -1), remove("~/n", -1))
				a.fence()
			})
		}
	}
	told("removeWatches of types that do not exist", get("~", true), removeWatches("~", 0), removeWatches("~", 6), removeWatches("~", -1), set("~", "", -1))
	told("checkWatches and removeWatches of paths that are not valid", checkWatches("", 1), removeWatches("", 1), checkWatches("x", 2), removeWatches("x", 2), checkWatches("~/", 3),
		removeWatches("~//", 3), exists("~", false))
	told("checkWatches without a path", checkWatches(null, 1), exists("~", false))
	told("removeWatches without a path", removeWatches(null, 1), exists("~", false))
	told("removeWatches removes one kind of two", create("~/n", "", persistent), get("~/n", true), list("~/n", true), removeWatches("~/n", typeChildren), create("~/n/c", "", persistent),
		set("~/n", "", -1))
	told("removeWatches of any kind removes both", create("~/n", "", persistent), get("~/n", true), list("~/n", true), addWatch("~/n", 0), removeWatches("~/n", typeAny),
		create("~/n/c", "", persistent), set("~/n", "", -1))
}
