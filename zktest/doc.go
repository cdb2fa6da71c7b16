// Package zktest is a ZooKeeper server for tests, in the process: net/http/httptest for
// ZooKeeper. It speaks the real protocol, so that the production client is used, unchanged.
//
//	srv := zktest.Run(t)                     // closed by Cleanup, which fails t if sessions or watches are left over
//	conn := srv.Connect(t, 10*time.Second)   // a go-zookeeper client with a session
//	srv.Load(map[string]string{"/app/config": "v1"})
//	...
//	zktest.CheckNode(t, srv, "/app/config", []byte("v2"))
//
// Any other client connects to [Server.Addr] over TCP, or through [Server.Dial] in
// memory. It keeps nothing.
//
// # Time
//
// Everything works inside a testing/synctest bubble over Dial: sessions then expire by
// virtual time, and tests can assert exact instants. For clients on TCP the test moves the server's
// clock: [WithManualClock], [Server.Advance].
//
// # Faults
//
// Tests reach behind the client's back. [Server.Expire], [Server.Disconnect],
// [Server.Partition], [Server.Freeze], [Server.Restart] and others do what networks and servers do.
// [Server.Intercept] acts on single requests:
//
//	srv.Intercept(zktest.On(zktest.Create, "/locks/**").Nth(2).LoseReply())
//
// [RunEnsemble] starts several servers with one history, which lag, lose each other and elect leaders.
//
// # Looking inside
//
// [Server.Node], [Server.Tree], [Server.Sessions], [Server.WatchList], [Server.Requests] and
// [Server.Log] look without a client, [Server.Dump] shows everything; [CheckNode] and others assert; [WaitNode],
// [Server.WaitFor] and others wait without polling; [Server.OnCommit] sees each transaction at its instant.
//
// What is implemented, and how it differs from a real server, is listed in docs/zktest.md, with a table for those who
// know miniredis.
package zktest
