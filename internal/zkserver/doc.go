// Package zkserver is a ZooKeeper server that runs inside the process and keeps
// everything in memory. It speaks the real wire protocol, so that unmodified
// clients of any language can use it, over TCP or over [net.Pipe].
//
// It is modelled on a standalone ZooKeeper 3.8: one serial history of
// transactions with real zxids, the same two stages (a request is prepared
// against the outstanding changes, then committed), the same session expiry
// buckets, the same watch and error rules. What differs is that nothing is
// written to disk and that tests can reach in: see the fault methods
// ([Server.Partition], [Server.Freeze], [Config.Intercept] ...) and the
// inspection methods ([Server.Node], [Server.Sessions] ...).
//
// # Layout
//
// Reading order: jute.go and call.go decode frames; conn.go and handshake.go own a
// connection; pipeline.go takes a request through prep.go and apply.go to a
// reply; tree.go, watch.go, session.go and acl.go are the state.
//
// All state is guarded by one mutex that is only ever held for pure memory
// work. That matters inside a testing/synctest bubble: a goroutine
// blocked on a mutex does not let virtual time advance.
package zkserver
