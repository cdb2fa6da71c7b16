package conformance

func init() {
	told("delete", create("~/a", "", persistent), remove("~/a", -1), exists("~/a", false), exists("~", false))
	told("delete of a node that does not exist", remove("~/a", -1), remove("~/a/b", -1), remove("~/a", 3), exists("~", false))
	told("delete with the version", create("~/a", "", persistent), set("~/a", "", -1), remove("~/a", 0), remove("~/a", 2), remove("~/a", -2),
		remove("~/a", 1), exists("~/a", false))
	told("delete of a node with children", create("~/a", "", persistent), create("~/a/b", "", ephemeral), remove("~/a", -1), remove("~/a", 5),
		remove("~/a/b", -1), remove("~/a", 0))
	told("delete of the root and of the server's own nodes", remove("/", -1), remove("/zookeeper", -1), remove("/zookeeper/quota", -1),
		remove("/zookeeper/config", -1))
	told("delete of paths that are not valid", remove("", -1), remove("a", -1), remove("~/", -1), remove("~//a", -1), remove("~/a\x00", -1), remove("~/.", -1),
		remove(null, -1), exists("~", false))
	told("delete changes the parent's status", create("~/a", "", persistent), create("~/b", "", persistent), exists("~", false), remove("~/a", -1),
		exists("~", false), remove("~/b", -1), exists("~", false))
	told("a node that is made again is a new node", create("~/a", "x", persistent), set("~/a", "y", -1), create("~/a/b", "", persistent), remove("~/a/b", -1),
		setACL("~/a", -1, open...), remove("~/a", -1), create("~/a", "z", persistent), get("~/a", false))
	told("a failing delete costs a transaction", exists("~", false), remove("~/a", -1), exists("~", false), remove("/", -1), exists("~", false))
	told("deleteContainer from a client", create("~/a", "", persistent), deleteContainer("~/a"), exists("~/a", false))
	add("delete of somebody else's ephemeral node", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.do(create("~/e", "x", ephemeral))
		b.all(get("~/e", false), remove("~/e", 0))
		a.do(exists("~/e", false))
		a.close()
		b.do(exists("~", false))
	})
}
