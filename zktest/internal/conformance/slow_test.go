package conformance

import "time"

// brief is the timeout in milliseconds of a session that shall end by itself. What a scenario does before has to be
// done by then, even if a server or the test stands still for a while; so is it with the times to live.
const brief = 5000

// Scenarios that take their time, or restart the server.
func init() {
	addAs(shared, "a session that is not heard of expires", func(w *world) {
		a, b := w.join("A"), w.dial("B")
		b.greet(hello{timeout: brief})
		b.all(create("~/one", "", ephemeral), create("~/two", "", ephemeral), create("~/p", "", persistent), create("~/p/three", "", ephemeral))
		a.all(exists("~/one", true), get("~/two", true), list("~/p", true), list("~", true))
		for range 4 {
			a.event()
		}
		a.all(list2("~", false), list2("~/p", false))
		w.offRecord(b.ended)
		w.resume("C", b.session, 0).ended()
	})
	addAs(shared, "a session whose connection was cut expires", func(w *world) {
		a, b := w.join("A"), w.dial("B")
		b.greet(hello{timeout: brief})
		b.do(create("~/e", "", ephemeral))
		a.do(exists("~/e", true))
		b.drop()
		a.event()
		a.do(list2("~", false))
		w.resume("C", b.session, 0).ended()
	})
	addAs(shared, "pings keep a session alive", func(w *world) {
		a, b := w.join("A"), w.dial("B")
		b.greet(hello{timeout: brief})
		b.do(create("~/e", "", ephemeral))
		a.do(exists("~/e", true))
		w.offRecord(func() {
			beat := time.NewTicker(200 * time.Millisecond) // in the time of real servers, longer than the session could live without
			defer beat.Stop()
			for range 33 {
				<-beat.C
				b.fence()
			}
		})
		b.do(exists("~/e", false))
		a.fence()
	})
	addAs(owning, "data, sessions and counters survive a restart", func(w *world) {
		a := w.join("A")
		a.all(create("~/n", "x", persistent), set("~/n", "y", -1), setACL("~/n", -1, anyone(permAll), grant{permRead, "digest", aliceID}), create("~/e-", "", ephemeralSeq),
			create("~/s-", "", sequential), remove("~/s-0000000002", -1), container("~/c", ""), create("~/c/x", "", persistent))
		w.restart()
		a.ended()
		b := w.resume("B", a.session, a.seen)
		b.all(get("~/n", false), getACL("~/n"), exists("~/e-0000000001", false), list2("~", false), create("~/s-", "", sequential), exists("~/c", false), exists("~", false))
		b.close()
		w.join("C").do(list2("~", false))
	})
	addAs(seldom, "watches do not survive a restart", func(w *world) {
		a := w.join("A")
		a.all(create("~/n", "x", persistent), get("~/n", true), list("~", true), addWatch("~", modeRecursive))
		w.restart()
		a.ended()
		b := w.resume("B", a.session, a.seen)
		b.all(set("~/n", "y", -1), create("~/m", "", persistent))
	})
}

func init() {
	addAs(seldom, "a session that has ended stays so after a restart", func(w *world) {
		a, b := w.join("A"), w.join("B")
		b.do(create("~/e", "", ephemeral))
		b.close()
		w.restart()
		a.ended()
		w.resume("C", b.session, 0).ended()
		w.resume("D", a.session, 0).do(list2("~", false))
	})
	addAs(seldom, "a multi and a failed write before a restart", func(w *world) {
		a := w.join("A")
		a.all(multi(create("~/a", "", persistent), create("~/a/b", "", ephemeral)), multi(create("~/c", "", persistent), remove("~/x", -1)), create("~/x/y", "", persistent))
		w.restart()
		a.ended()
		b := w.resume("B", a.session, a.seen)
		b.all(list2("~", false), list2("~/a", false), exists("~/a/b", false), create("~/d", "", persistent))
	})
	addAs(seldom, "the list of children after a restart", func(w *world) {
		a := w.join("A")
		for _, n := range []string{"AaAa", "BBBB", "AaBB", "BBAa", "zebra", "yak", "x-ray", "wolf"} {
			a.do(create("~/"+n, "", persistent))
		}
		a.all(list("~", false), remove("~/yak", -1), create("~/yak", "", persistent), list("~", false))
		w.restart()
		w.resume("B", a.session, a.seen).do(list("~", false))
	})
}
