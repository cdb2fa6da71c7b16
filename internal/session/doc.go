// Package session is a connection to ZooKeeper that outlives single ZooKeeper sessions, with what hangs
// on it: who waits ([Session.Bounded], [Session.In]), who holds ([Session.Remember]), what runs
// ([Session.Spawn]), and how all of that ends ([Session.Close]). It also has what a program says of a
// session: the connect string, the options, the session file, from which a process that starts again
// ends the session of its dead predecessor.
//
// Package zksync shows [Session] to users; recipes reach it through [Access].
package session
