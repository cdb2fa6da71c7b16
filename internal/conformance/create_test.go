package conformance

func init() {
	add("create a node and look at its status", func(w *world) {
		a := w.join("A")
		a.all(create("~/a", "x", persistent), exists("~/a", false), get("~/a", false), exists("~", false))
		b := w.join("B")
		b.all(get("~/a", true))
		a.all(set("~/a", "yy", -1), create("~/a/b", "", ephemeral), list2("~/a", false))
		b.fence()
		a.close()
		b.all(list2("~/a", false))
	})
	add("an unknown operation", func(w *world) {
		a := w.join("A")
		a.do(bare(99, "unknown"))
		a.ended()
	})
}
