package conformance

func init() {
	told("a transaction of every operation",
		create("~/old", "", persistent), create("~/gone", "", persistent),
		multi(create("~/a", "x", persistent), create2("~/b", "", ephemeral), container("~/c", ""), remove("~/gone", -1), set("~/old", "y", 0), check("~/old", 1)),
		list2("~", false), get("~/a", false), get("~/old", false), exists("~/b", false))
	told("an empty transaction", multi(), exists("~", false))
	told("every part of a transaction has the same zxid", multi(create("~/a", "", persistent), create("~/a/b", "", persistent), set("~/a", "x", 0)),
		exists("~/a", false), exists("~/a/b", false), exists("~", false))
	for _, bad := range []struct {
		name string
		op   op
	}{
		{"node exists", create("~", "", persistent)},
		{"no parent", create("~/x/y", "", persistent)},
		{"bad path", create("~//", "", persistent)},
		{"bad flags", create("~/f", "", 9)},
		{"TTL flag", create("~/f", "", ttlFlag)},
		{"bad list", createACL("~/f", "", persistent, nil)},
		{"delete of nothing", remove("~/x", -1)},
		{"delete with a wrong version", remove("~/n", 4)},
		{"delete of a parent", remove("~", -1)},
		{"delete of the root", remove("/", -1)},
		{"set of nothing", set("~/x", "", -1)},
		{"set with a wrong version", set("~/n", "", 4)},
		{"set of a bad path", set("x", "", -1)},
		{"check of nothing", check("~/x", -1)},
		{"check with a wrong version", check("~/n", 4)},
		{"check of a bad path", check("x", -1)},
		{"createTTL", createTTL("~/t", "", ttlFlag, 100)},
		{"createTTL without the flag", createTTL("~/t", "", persistent, 100)},
	} {
		told("a transaction rolls back after: "+bad.name,
			create("~/n", "old", persistent),
			multi(create("~/a", "", persistent), set("~/n", "new", -1), bad.op, create("~/b", "", persistent), remove("~/n", -1)),
			list2("~", false), get("~/n", false), multi(bad.op), multi(bad.op, bad.op), exists("~", false))
	}
	told("two parts of a transaction fail: the first one counts", multi(create("~/a", "", persistent), remove("~/x", -1), set("~/y", "", -1)), exists("~/a", false))
	told("a transaction sees its own changes", multi(create("~/a", "", persistent), create("~/a/b", "", persistent), check("~/a", 0), set("~/a", "1", 0),
		check("~/a", 1), remove("~/a/b", -1), remove("~/a", 1)), list2("~", false))
	told("a transaction sees its own deletes", create("~/a", "", persistent), multi(remove("~/a", -1), create("~/a", "again", persistent)), get("~/a", false),
		multi(remove("~/a", -1), set("~/a", "", -1)), get("~/a", false))
	told("a transaction counts its own children", create("~/a", "", persistent), multi(create("~/a/b", "", persistent), remove("~/a", -1)), list2("~/a", false),
		multi(create("~/a/b", "", ephemeral), create("~/a/b/c", "", persistent)), list2("~/a", false))
	told("after a rollback the next change is counted from the old state",
		create("~/a", "", persistent), multi(set("~/a", "1", 0), set("~/a", "2", 0)), set("~/a", "3", 0), exists("~/a", false),
		multi(remove("~/a", -1), check("~/x", 0)), create("~/a/b", "", persistent), list2("~/a", false))
	told("a read in a transaction", multi(malformed(4, "getData", func(r *record) { r.path("~").boolean(false) })), exists("~", false))
	told("a read after a write in a transaction", multi(create("~/a", "", persistent), get("~", false)), exists("~/a", false))
	told("operations that a transaction does not know: setACL", multi(setACL("~", -1, open...)), exists("~", false))
	told("operations that a transaction does not know: exists", multi(exists("~", false)), exists("~", false))
	told("operations that a transaction does not know: sync", multi(syncOf("~")), exists("~", false))
	told("operations that a transaction does not know: a number", multi(bare(77, "seventy-seven")), exists("~", false))
	told("operations that a transaction does not know: a transaction", multi(multi(create("~/a", "", persistent))), exists("~", false))
	told("a container flag in a transaction", multi(create("~/a", "", containerFlag), create2("~/b", "", containerFlag)), list2("~", false))
	told("a create under every number in a transaction", multi(create("~/a", "", persistent).as(19), create("~/b", "", ephemeral).as(19),
		create("~/c", "", persistent).as(15)), list2("~", false), exists("~/b", false))
	add("a transaction of hundred creates", func(w *world) {
		a := w.join("A")
		a.all(multi(repeated(100, create("~/n-", "", sequential))...), exists("~", false), list("~", false))
	})
}

func init() {
	add("watches of one transaction fire in the order of its parts", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(create("~/1", "", persistent), create("~/2", "", persistent), create("~/3", "", persistent))
		b.all(get("~/1", true), get("~/2", true), get("~/3", true), exists("~/4", true), list("~", true), list("~/2", true))
		a.do(multi(set("~/3", "", -1), remove("~/2", -1), create("~/4", "", persistent), set("~/1", "", -1)))
		b.do(list2("~", false))
	})
	add("a transaction that fails fires no watch", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.all(get("~", true), list("~", true), exists("~/a", true))
		a.do(multi(create("~/a", "", persistent), set("~", "x", -1), remove("~/x", -1)))
		b.fence()
		a.do(multi(create("~/a", "", persistent), set("~", "x", -1)))
		b.fence()
	})
	told("multiRead", create("~/a", "xyz", persistent), create("~/a/b", "", persistent),
		multiRead(get("~/a", false), list("~/a", false), get("~/x", false), list("~/x", false), get("~", false)), exists("~", false))
	told("an empty multiRead", multiRead(), exists("~", false))
	told("multiRead of what cannot be read so: exists", multiRead(exists("~", false)), exists("~", false))
	told("multiRead of what cannot be read so: getChildren2", multiRead(list2("~", false)), exists("~", false))
	told("multiRead of writes", multiRead(create("~/a", "", persistent), set("~", "", -1)), exists("~", false))
	told("multiRead of reads and writes", multiRead(get("~", false), create("~/a", "", persistent)), exists("~", false))
	told("multiRead of a path that is not valid", multiRead(get("~/", false), list("x", false)), exists("~", false))
	told("multiRead that may not read", create("~/a", "", persistent), setACL("~/a", -1, anyone(permAdmin|permDelete)),
		multiRead(get("~/a", false), list("~/a", false), get("~", false)))
	add("multiRead sets watches", func(w *world) {
		a := w.join("A")
		a.all(create("~/a", "", persistent), multiRead(get("~/a", true), list("~/a", true)), create("~/a/b", "", persistent), set("~/a", "", -1), exists("~", false))
	})
	told("check outside of a transaction that fails", check("~", 7), check("~/x", -1), check("x", -1), check("", -1), check("~/", -1), check(null, -1), exists("~", false))
}
