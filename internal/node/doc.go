// Package node makes the ephemeral nodes of queues and meeting points. Most of their names have a sequence number. One
// round trip makes a node and tells who else is there. No node is ever left behind.
//
// The transaction that creates the node also writes to the directory, so the directory's Stat as of that very
// moment comes back with it. If the answer is lost, the node is looked for by the uuid in its name.
package node
