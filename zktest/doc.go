// Package zktest is a ZooKeeper server for tests, in the process: net/http/httptest for
// ZooKeeper. It speaks the real protocol, so tests use the production client unchanged.
//
//	srv := zktest.Run(t)                     // Cleanup closes it, and fails t if sessions or watches are left over
//	conn := srv.Connect(t, 10*time.Second)   // a go-zookeeper client with a session
//	srv.Load(map[string]string{"/app/config": "v1"})
//	...
//	zktest.CheckNode(t, srv, "/app/config", []byte("v2"))
//
// Any other client connects to [Server.Addr] over TCP, or through [Server.Dial] in
// memory. It keeps nothing on disk.
//
// # Time
//
// Everything works inside a testing/synctest bubble over Dial: sessions then expire by
// virtual time, and tests can assert exact instants. For clients on TCP the test moves the server's
// clock: [WithManualClock], [Server.Advance].
//
// # Faults
//
// [Server.Expire], [Server.Disconnect],
// [Server.Partition], [Server.Freeze], [Server.Restart] and others simulate faults of networks and servers.
// [Server.Intercept] acts on single requests:
//
//	srv.Intercept(zktest.On(zktest.Create, "/locks/**").Nth(2).LoseReply())
//
// [RunEnsemble] starts several servers with one history, which can lag, be cut off from each other and elect leaders.
//
// # Looking inside
//
// [Server.Node], [Server.Tree], [Server.Sessions], [Server.WatchList], [Server.Requests] and
// [Server.Log] read the state without a client. [Server.Dump] shows everything. [CheckNode] and others assert. [WaitNode],
// [Server.WaitFor] and others wait without polling. [Server.OnCommit] sees each transaction at its instant.
//
// docs/zktest.md lists what is implemented, and the differences from a real server. It has a table for users of miniredis.
package zktest
