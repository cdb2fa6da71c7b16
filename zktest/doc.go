// Package zktest is a ZooKeeper server for tests, in the process: net/http/httptest for ZooKeeper. It speaks
// the real protocol, so tests use the production client unchanged. It keeps nothing on disk.
//
//	srv := zktest.Run(t)                     // Cleanup closes it, and fails t if sessions or watches are left over
//	conn := srv.Connect(t, 10*time.Second)   // a go-zookeeper client with a session
//	srv.Load(map[string]string{"/app/config": "v1"})
//	...
//	zktest.CheckNode(t, srv, "/app/config", []byte("v2"))
//
// docs/zktest.md says how to use it, in synctest bubbles too, what is implemented, and how it differs from a
// real server.
//
// # Rules
//
// A call that makes no sense fails the test. A server of [Start] panics instead.
//
// A fault that lasts returns a function that ends it, which may be called twice.
//
// Wait functions do not poll. They fail the test at once when they wait for more than a minute, virtual in a
// bubble. Call them from the goroutine of the test. Check functions let the test go on.
//
// A hook runs while the server is locked: it must be quick and must not call the server.
//
// Methods that write need no client, permission or version; watches fire. Methods for trees leave the
// server's own /zookeeper out.
package zktest
