package conformance

// What shows the root needs servers of its own: there the children of the root are the same.
func init() {
	addAs(owning, "an empty path is the root for operations that read", func(w *world) {
		a := w.join("A")
		a.all(exists("", false), get("", false), list("", false), list2("", false), getACL(""), multiRead(get("", false), list("", false)))
		a.all(exists("/", false), get("/", false), list("/", false), list2("/", false), getACL("/"))
	})
	addAs(owning, "an empty path in operations that write", func(w *world) {
		w.join("A").all(create("", "", persistent), create("", "", sequential), remove("", -1), set("", "x", -1), setACL("", -1, open...), check("", 9), list2("/", false))
	})
	addAs(owning, "watches of the root", func(w *world) {
		a, b := w.join("A"), w.join("B")
		for _, path := range []string{"/", ""} {
			b.all(get(path, true), exists(path, true), list(path, true))
			a.do(set("/", "x", -1))
			b.fence()
			a.all(create("/n", "", persistent), remove("/n", -1))
			b.fence()
		}
	})
	addAs(owning, "changes of the root", func(w *world) {
		w.join("A").all(set("/", "x", -1), set("/", "x", 7), get("/", false), setACL("/", -1, anyone(permAll), grant{permRead, "ip", "127.0.0.1"}), getACL("/"), exists("/", false),
			create("/", "", sequential), create("/n-", "", ephemeralSeq), remove("/", -1), list2("/", false))
	})
	addAs(owning, "status of a server that is new", func(w *world) {
		w.join("A").all(exists("/", false), exists("/zookeeper", false), exists("/zookeeper/quota", false), exists("/zookeeper/config", false), list2("/", false),
			list2("/zookeeper", false), getACL("/"), getACL("/zookeeper"), getACL("/zookeeper/quota"), getACL("/zookeeper/config"))
	})
}
