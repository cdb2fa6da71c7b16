// Package session is a connection to ZooKeeper that outlives single ZooKeeper sessions. It has the waiting
// calls ([Session.Bounded], [Session.In]), the holds ([Session.Remember]), the goroutines ([Session.Spawn]),
// and the end of all of them ([Session.Close]). It also has the connect string, the options and the session
// file: with it a process that starts again ends the session of its dead predecessor.
//
// It is above package queue: [Access] makes the queues of recipes.
//
// Package zksync shows [Session] to users; recipes reach it through [Access].
package session
