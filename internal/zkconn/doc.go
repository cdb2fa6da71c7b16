// Package zkconn is the only place that knows the quirks of go-zookeeper/zk.
//
// A [Client] keeps one ZooKeeper session alive at a time and opens the next one
// when it ends. Each session is an [Epoch] with a *zk.Conn of its own, whose
// dialer refuses to dial once the session is over. So a request that was queued
// in one session can never be executed in the next, which the bare client would
// do silently.
//
// Every connection is wrapped in a net.Conn that sees each frame both ways. It
// bounds the handshake, reads the negotiated timeout, keeps the lease clock from
// the send times of acknowledged requests, writes the credentials again after
// each reconnect, sets watches and delivers their events in wire order, and
// checks the shape of every reply before the client decodes it, because the
// client's own decoder can panic or allocate without bound.
package zkconn
