package conformance

func init() {
	told("sequence numbers count up", create("~/n-", "", sequential), create("~/n-", "", sequential), create("~/m", "", ephemeralSeq),
		create2("~/m", "", sequential), list2("~", false))
	told("a sequential node may be all number", create("~/", "", sequential), create("~/", "", ephemeralSeq), list("~", false), get("~/0000000000", false))
	told("sequence numbers count creates of any kind, not deletes",
		create("~/a", "", persistent), create("~/b", "", ephemeral), create("~/n-", "", sequential), remove("~/a", -1), remove("~/b", -1),
		create("~/n-", "", sequential), exists("~", false))
	told("a failed create uses no sequence number", create("~/a", "", persistent), create("~/a", "", persistent), create("~/n-", "", sequential))
	told("a sequence number can be taken already", create("~/n-0000000001", "", persistent), create("~/n-", "", sequential), create("~/n-", "", sequential))
	told("a sequence number below another parent starts at 0", create("~/p", "", persistent), create("~/p/n-", "", sequential), create("~/n-", "", sequential))
	told("sequence numbers start again when the parent is made again",
		create("~/p", "", persistent), create("~/p/n-", "", sequential), remove("~/p/n-0000000000", -1), remove("~/p", -1),
		create("~/p", "", persistent), create("~/p/n-", "", sequential), exists("~/p", false))
	told("changing data or access does not touch the sequence", set("~", "x", -1), setACL("~", -1, anyone(permAll)), create("~/n-", "", sequential))
	told("sequence numbers within one transaction",
		multi(create("~/n-", "", sequential), create("~/n-", "", sequential), create("~/n-", "", ephemeralSeq)), list2("~", false))
	told("a transaction that fails gives its sequence numbers back",
		create("~/n-", "", sequential), multi(create("~/n-", "", sequential), create("~/x/y", "", persistent)), create("~/n-", "", sequential), exists("~", false))
	add("sequence numbers of several sessions", func(w *world) {
		a, b := w.join("A"), w.join("B")
		for range 3 {
			a.do(create("~/n-", "a", ephemeralSeq))
			b.do(create("~/n-", "b", ephemeralSeq))
		}
		a.close()
		b.all(create("~/n-", "b", ephemeralSeq), list2("~", false))
	})
	add("sequence numbers of requests in flight together", func(w *world) {
		a := w.join("A")
		var last int32
		for range 12 {
			last = a.send(create("~/n-", "", sequential))
		}
		a.await(last)
		a.do(list2("~", false))
	})
	nearTheEnd()
}

// nearTheEnd are scenarios about the end of the counter: what is applied one after the other stays there, what is
// in flight together goes on below zero.
func nearTheEnd() {
	at := func(how way, n int32, name string, then func(a *client)) {
		addAs(how, name, func(w *world) {
			w.join("A").do(create("~/p", "", persistent))
			w.setSequence("~/p", n)
			a := w.join("A")
			then(a)
			a.all(exists("~/p", false), list("~/p", false))
		})
	}
	at(seldom, 2147483645, "the last sequence numbers", func(a *client) {
		for range 5 {
			a.do(create("~/p/n-", "", sequential))
		}
		a.all(create("~/p/m-", "", ephemeralSeq), create("~/p/plain", "", persistent), remove("~/p/plain", -1), create("~/p/o-", "", sequential))
	})
	at(owning, 2147483646, "the last sequence numbers within one transaction", func(a *client) {
		a.all(multi(create("~/p/a-", "", sequential), create("~/p/b-", "", sequential), create("~/p/c-", "", ephemeralSeq), create("~/p/d-", "", sequential)),
			exists("~/p", false), create("~/p/e-", "", sequential), multi(create("~/p/f-", "", sequential), create("~/p/g-", "", sequential)))
	})
	at(seldom, -3, "sequence numbers below zero", func(a *client) {
		for range 5 {
			a.do(create("~/p/n-", "", sequential))
		}
	})
	at(seldom, 1073741824, "the status of a node with very many changes of children", func(a *client) {
		a.all(create("~/p/n", "", persistent), exists("~/p", false), remove("~/p/n", -1))
	})
}
