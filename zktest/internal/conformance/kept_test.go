package conformance

// Differences that are kept on purpose. Each must still be there: one that is gone is taken off the list.
func init() {
	addKept("a check outside of a transaction that succeeds", "the real server stumbles and never answers it, so that a client could only wait",
		func(w *world) {
			a := w.join("A")
			a.send(check("~", 0))
			a.fence()
		})
	addKept("what a server says of itself", "a log shall tell which server it was", func(w *world) {
		w.ask("mntr", "version")
	})
}
