// Package node makes the nodes that queues and gatherings consist of: ephemeral
// (or, where a recipe says so, durable) sequential nodes in a directory, each in one
// round trip that also tells who else is there, and none of them ever left behind.
//
// The transaction that creates the node also writes to the directory, so that the
// directory's Stat as of that very moment comes back with it. A node whose answer
// was lost is looked for by a uuid that no other attempt has.
package node
