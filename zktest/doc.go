// Package zktest is a ZooKeeper server for tests, in the process: net/http/httptest for ZooKeeper. It speaks
// the real protocol, so tests use the production client unchanged. It keeps nothing on disk.
//
//	srv := zktest.Run(t)                     // Cleanup closes it, and fails t if sessions or watches are left over
//	conn := srv.Connect(t, 10*time.Second)   // a go-zookeeper client with a session
//	srv.Load(map[string]string{"/app/config": "v1"})
//	...
//	zktest.CheckNode(t, srv, "/app/config", []byte("v2"))
//
// docs/zktest.md says what is implemented, how it differs from a real server, and how to use it: time and
// synctest bubbles, faults, ensembles.
//
// # Rules
//
// A call that makes no sense, such as a fault of a session that never was, fails the test. A server of
// [Start] panics instead.
//
// A fault that lasts returns a function that ends it, which may be called twice.
//
// Wait functions do not poll. They fail the test at once when they wait for more than a minute, virtual in a
// bubble. Call them from the goroutine of the test.
//
// Check functions look at the server as it is now, and let the test go on.
//
// A hook runs while the server is locked: it must be quick and must not call the server.
package zktest
