// Package engine is a ZooKeeper server that runs inside the process and keeps
// everything in memory. It speaks the real wire protocol, so that unmodified
// clients of any language can use it, over TCP or over [net.Pipe].
//
// It is modelled on ZooKeeper 3.8: one serial history of
// transactions with real zxids, the same two stages (a request is prepared
// against the outstanding changes, then committed), the same session expiry
// buckets, the same watch and error rules. What differs is that nothing is
// written to disk and that tests can reach in: see the fault methods
// ([Server.Block], [Server.Freeze], [Config.Intercept] ...) and the
// inspection methods ([Server.Node], [Server.Sessions] ...).
//
// # The way of a frame
//
// A connection has a reader and a writer (conn.go). A request goes through these hands, and the steps 3 to 6
// hold the lock (in step 2 the interceptor runs without it):
//
//  1. inbox.go: the reader takes the frame off the wire, and puts it behind what has arrived before (arrivals.go). The pump takes it
//     out when nothing keeps it back: a partition, a latency, a freeze, a request in front of it that a rule holds.
//  2. dispatch.go: the frame becomes a [wire.Call]; the session is renewed ([order.hear]); the interceptor gives its verdict
//     (verdict.go). A request that it holds waits in the session's queue (heldqueue.go). The first frame is the handshake's
//     (handshake.go).
//  3. [order.submit] gives the request its place in the history. A server on its own (alone.go) does so itself; a member of an
//     ensemble (replicate.go) hands it to the leader if it is a write or a sync.
//  4. prep.go: whoever orders the request prepares it: a write gets its zxid and becomes a transaction, or an error, by the rules of
//     package tree. It is then pending for the time that a commit takes (pipeline.go).
//  5. [order.publish] has it applied, in the order of the history, by each server that hears of it (commit.go): the tree
//     changes, hooks see the transaction, and watches fire, so that an event leaves before the reply that shows the change.
//  6. pipeline.go and reply.go: the server that the client is connected to reads what was asked for, and encodes the reply;
//     the verdict may lose it or keep it back.
//  7. outbox.go: the writer sends what is due, in order. Watch events come to it through their own verdict, which may lose one, or
//     hold it and what is sent after it (conn.go, eventhold.go).
//
// # Layout
//
// What needs no server is in leaves: [jvm] (what the real server's runtime lets through), [wire] (codes, requests, fields of
// replies), [access] (identities and lists), [tree] (nodes and transactions), [watch] (who is told of what). Each imports only those
// that are named before it.
//
// config.go is what a server can be told, with what its hooks see; server.go its state. lifecycle.go starts and stops it, and
// advance.go moves its clock (clock.go).
//
// [order] is all that a server on its own and a member of an ensemble do differently. ensemble.go, election.go, takeover.go,
// replicate.go, isolate.go and member.go are the ensemble. session.go, expire.go and expiryqueue.go keep sessions; fault.go the network's
// faults (link.go); the fourletter files, mntr.go and stats.go what a server says about itself.
//
// All state is guarded by one mutex that is only ever held for pure memory
// work. That matters inside a testing/synctest bubble: a goroutine
// blocked on a mutex does not let virtual time advance.
package engine
