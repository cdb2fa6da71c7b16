package conformance

import "time"

// Nodes that the server removes by itself.
func init() {
	soon := settings{extended: true, reaping: 500 * time.Millisecond}
	addWith(soon, shared, "a container goes when it has become empty", func(w *world) {
		a := w.join("A")
		a.all(container("~/c", "x"), create("~/c/n", "", persistent), exists("~/c", true), list("~", true), remove("~/c/n", -1))
		a.event()
		a.all(exists("~/c", false), list2("~", false))
	})
	addWith(soon, shared, "a container that never had a child stays", func(w *world) {
		a := w.join("A")
		a.all(container("~/never", ""), container("~/c", ""), create("~/c/n", "", ephemeral), exists("~/c", true), remove("~/c/n", -1))
		a.event()
		a.all(list2("~", false), exists("~/never", false))
	})
	addWith(soon, shared, "a container whose child goes with its session", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(container("~/c", ""))
		b.do(create("~/c/n", "", ephemeral))
		a.do(exists("~/c", true))
		b.close()
		a.event()
		a.do(list2("~", false))
	})
	addWith(soon, shared, "a container in a container", func(w *world) {
		a := w.join("A")
		a.all(container("~/c", ""), container("~/c/d", ""), create("~/c/d/n", "", persistent), exists("~/c", true), remove("~/c/d/n", -1))
		a.event()
		a.do(list2("~", false))
	})
	addWith(soon, shared, "a node with a time to live goes when that is over", func(w *world) {
		a := w.join("A")
		a.all(createTTL("~/t", "x", ttlFlag, 6000), get("~/t", false), exists("~/t", true), list("~", true))
		a.event()
		a.all(exists("~/t", false), list2("~", false))
	})
	addWith(soon, shared, "a node with a time to live goes even if it never had a child, and one with children stays", func(w *world) {
		a := w.join("A")
		a.all(createTTL("~/parent", "", ttlFlag, 6000), create("~/parent/n", "", persistent), createTTL("~/t", "", ttlSeqFlag, 7000), exists("~/t0000000001", true))
		a.event()
		a.all(list2("~", false), exists("~/parent", true), remove("~/parent/n", -1))
		a.event()
		a.do(list2("~", false))
	})
	addWith(soon, shared, "each time to live that is not allowed", func(w *world) {
		w.join("A").all(createTTL("~/a", "", ttlFlag, 0), createTTL("~/a", "", ttlSeqFlag, 0), createTTL("~/a", "", ttlFlag, 1<<40),
			createTTL("~/a", "", ttlFlag, 1<<40-1), createTTL("~/b", "", ttlFlag, 1), createTTL("~/c", "", ephemeral, 100), createTTL("~/d", "", persistent, 100),
			multi(createTTL("~/e", "", ttlFlag, 0)), multi(createTTL("~/f", "", ttlFlag, 1<<39)), list2("~/f", false))
	})
	addWith(settings{extended: true}, alone, "status and errors of nodes with a time to live", func(w *world) {
		a := w.join("A")
		a.all(createTTL("~/t", "x", ttlFlag, 60000), create("~/t/n", "", persistent), create("~/t/e", "", ephemeral), createTTL("~/t", "", ttlFlag, 1), list2("~/t", false),
			createTTL("~/t/s-", "", ttlSeqFlag, 60000), create2("~/t/s-", "", sequential), set("~/t", "y", 0), createTTL("~/t/e/x", "", ttlFlag, 1000),
			create("~/u", "", ttlFlag), create2("~/u", "", ttlSeqFlag), ephemerals("~"), allChildren("~"), remove("~/t/n", -1), remove("~/t", -1), exists("~/t", false))
		a.close()
		w.join("B").do(list2("~/t", false))
	})
	addWith(settings{extended: true}, alone, "a transaction with nodes with a time to live", func(w *world) {
		w.join("A").all(multi(createTTL("~/t", "x", ttlFlag, 60000), create("~/t/n", "", persistent)), multi(create("~/m", "", persistent), create("~/u", "", ttlFlag)),
			multi(createTTL("~/s-", "", ttlSeqFlag, 60000), createTTL("~/s-", "", sequential, 60000), createTTL("~/e", "", ephemeral, 1)), list2("~", false), exists("~/e", false),
			multi(createTTL("~/v", "", ttlFlag, 60000), remove("~/nothing", -1)), list2("~", false))
	})
	addWith(settings{extended: true}, alone, "nodes with a time to live after a restart", func(w *world) {
		a := w.join("A")
		a.all(createTTL("~/t", "x", ttlFlag, 60000), container("~/c", ""), create("~/e", "", ephemeral))
		w.restart()
		a.ended()
		b := w.resume("B", a.session, a.seen)
		b.all(exists("~/t", false), exists("~/c", false), exists("~/e", false), list2("~", false), createTTL("~/s-", "", ttlSeqFlag, 60000))
	})
}
