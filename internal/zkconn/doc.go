// Package zkconn is the only place that knows the quirks of go-zookeeper/zk.
//
// A [Client] keeps one ZooKeeper session alive at a time and opens the next one when it
// ends. Each session is an [Epoch] with a *zk.Conn of its own. The dialer of this *zk.Conn
// refuses to dial once the session is over. So a request that was queued in one session
// can never be executed in the next. The bare client library would do that silently.
//
// Every connection is wrapped in a net.Conn (wire) that sees each frame in both directions. It bounds
// the handshake, and reads the negotiated timeout. It keeps the lease clock from the send times of
// acknowledged requests. It writes the credentials again after each reconnect. It sets watches, and
// delivers their events in wire order. And it checks the shape of every reply before the client
// library decodes it, because the library's own decoder can panic or allocate without bound.
//
// No file refers to one above it. From below: the lease clock and the hub of watches, session (what the connections of
// one session share), wire, Epoch (its present connection, and requests on it), Client (the state), and tenure, which
// connects an epoch and ends it for the client. A wire reports upwards only to its owner, which is the tenure.
package zkconn
