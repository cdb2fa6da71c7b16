package conformance

// Every change, and the status of the node, its parent and its child after it.
func init() {
	family := []op{create("~/p", "pp", persistent), create("~/p/n", "nn", persistent), create("~/p/n/c", "cc", persistent)}
	look := []op{exists("~/p", false), exists("~/p/n", false), exists("~/p/n/c", false)}
	for _, change := range []struct {
		name string
		ops  []op
	}{
		{"no change", nil},
		{"setData", []op{set("~/p/n", "longer", -1)}},
		{"setData with a version that is wrong", []op{set("~/p/n", "longer", 5)}},
		{"setData of the same value", []op{set("~/p/n", "nn", -1)}},
		{"setACL", []op{setACL("~/p/n", -1, anyone(permAll))}},
		{"setACL with a version that is wrong", []op{setACL("~/p/n", 5, anyone(permAll))}},
		{"create of a child", []op{create("~/p/n/d", "", persistent)}},
		{"create of an ephemeral child", []op{create("~/p/n/d", "", ephemeral)}},
		{"create of a sequential child", []op{create("~/p/n/d", "", sequential)}},
		{"create of a container child", []op{container("~/p/n/d", "")}},
		{"a failing create of a child", []op{create("~/p/n/c", "", persistent)}},
		{"delete of the child", []op{remove("~/p/n/c", -1)}},
		{"delete and create of the child", []op{remove("~/p/n/c", -1), create("~/p/n/c", "", persistent)}},
		{"create and delete of a grandchild", []op{create("~/p/n/c/g", "", persistent), remove("~/p/n/c/g", -1)}},
		{"check", []op{check("~/p/n", 3)}},
		{"sync", []op{syncOf("~/p/n")}},
		{"a transaction of everything", []op{multi(set("~/p/n", "1", -1), create("~/p/n/d", "", persistent), remove("~/p/n/c", -1), check("~/p", 0), set("~/p/n", "22", 1))}},
		{"a transaction that fails", []op{multi(set("~/p/n", "1", -1), create("~/p/n/d", "", persistent), check("~/p", 9))}},
		{"a transaction with one node made, changed and removed", []op{multi(create("~/p/n/d", "", persistent), set("~/p/n/d", "x", 0), remove("~/p/n/d", 1))}},
		{"a hundred changes of data", repeated(100, set("~/p/n", "x", -1))},
		{"fifty changes of access", repeated(50, setACL("~/p/n", -1, anyone(permAll)))},
	} {
		add("status after "+change.name, func(w *world) {
			a := w.join("A")
			a.all(family...)
			a.all(change.ops...)
			a.all(look...)
		})
	}
	add("status after the end of a session with a child", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(family...)
		b.all(create("~/p/n/e", "", ephemeral), create("~/p/n/f", "", ephemeral))
		a.all(look...)
		b.close()
		a.all(look...)
	})
	told("status of the server's own nodes", exists("/zookeeper/quota", false), exists("/zookeeper/config", false), getACL("/zookeeper/config"),
		list("/zookeeper", false), list("/zookeeper/quota", false))
}

func repeated(n int, o op) []op {
	all := make([]op, n)
	for i := range all {
		all[i] = o
	}
	return all
}
