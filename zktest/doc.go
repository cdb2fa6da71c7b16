// Package zktest is a ZooKeeper server for tests, in the process: net/http/httptest for
// ZooKeeper. It speaks the real protocol, so that the production client is used, unchanged.
//
//	srv := zktest.Run(t)                     // closed by Cleanup, which fails t if sessions or watches are left over
//	conn := srv.Connect(t, 10*time.Second)   // a go-zookeeper client with a session
//
// Any other client connects to [Server.Addr] over TCP, or through [Server.Dial] in
// memory. Everything works inside a testing/synctest bubble over Dial: sessions then expire by
// virtual time, and tests can assert exact instants.
//
// # Faults
//
// Tests reach behind the client's back. [Server.Expire], [Server.Disconnect],
// [Server.Partition], [Server.Freeze], [Server.Restart] and others do what networks and servers do.
// [Server.Intercept] acts on single requests:
//
//	srv.Intercept(zktest.On(zktest.Create, "/locks/**").Nth(2).LoseReply())
//
// # Looking inside
//
// [Server.Node], [Server.Tree], [Server.Sessions], [Server.Watches], [Server.Requests] and
// [Server.Log] look without a client; [Server.CheckNode] and others assert; [Server.WaitFor] and
// [Server.WaitChildren] wait without polling; [Server.OnCommit] sees each transaction at its instant.
//
// What is implemented, and how it differs from a real server, is listed in docs/zktest.md.
package zktest
