// Package conformance proves that the server of zktest/internal/engine, which zktest is made of, answers as a real
// ZooKeeper 3.8 does. It consists of tests only.
//
// A scenario is a Go function that drives any number of raw connections frame by frame. It runs on the
// real server and on ours; every reply, every watch event and every end of a connection becomes a line of a
// transcript, and the two transcripts must be the same. A difference is printed side by side.
//
// # Writing a scenario
//
// Put it into a file of its own subject:
//
//	func init() {
//		add("a watch on data fires before the reply that shows the change", func(w *world) {
//			a, b := w.join("A"), w.join("B") // two connections, each with a new session
//			a.do(create("~/n", "x", ephemeral))
//			b.do(get("~/n", true))
//			a.do(set("~/n", "y", -1))
//			b.do(get("~/n", false)) // the event enters the transcript before the answer
//			a.close()               // closeSession, and wait for the end of the connection
//			b.fence()               // wait until the server has sent everything that it has for b
//		})
//	}
//
// A path that begins with "~" is below the scenario's own node, which exists when it begins and is removed
// after it. The functions of ops_test.go make requests: create, create2, container, createTTL, remove, exists,
// get, set, getACL, setACL, list, list2, syncOf, check, multi, multiRead, auth, setWatches, setWatches2,
// addWatch, checkWatches, removeWatches, ephemerals, allChildren, whoAmI, closeSession; malformed makes
// one with any body, and as gives one another number. Of a client there are
//
//   - do, which sends a request and waits for the answer, and all, which does several;
//   - send, sendAs, sendRaw and await, for requests in flight together and for what no client sends;
//   - fence, event and ended, which wait for what comes unasked;
//   - drop, which cuts the connection, and close, which ends the session.
//
// The world has join, dial (with client.greet for the connect request), resume, restart and setSequence (in scenarios of the way
// owning), say, which puts any text into the transcript, and offRecord for what shall not enter it.
//
// Nothing is read in the background and nothing is waited for by the clock: a frame enters the transcript
// when the scenario waits on its connection. So a transcript is the same each time if the scenario
// awaits each answer before another connection sends something that matters to it. That something is
// not answered is seen with send and fence. At the end every open connection is fenced.
//
// # What is compared
//
// Every byte of every frame, decoded, except that
//
//   - a zxid is shown as its distance (z3) from the creation of the scenario's node, since scenarios run one after
//     the other; in those added with the way shared, which run together, as its place (#3) among the
//     zxids of its own transactions;
//   - a time is shown as "ok" if it is that of the transaction that it should be the time of;
//   - session ids (s1) and passwords (p1) are numbered in the order of their first appearance.
//
// Few differences are kept on purpose; addKept lists them, each with its reason.
//
// go test -show prints the transcripts of equal scenarios too: a way to ask the real server something.
package conformance
