// Package node makes the nodes of queues and meeting points: ephemeral (or,
// where a recipe says so, durable) sequential nodes in a directory. One round
// trip makes a node and tells who else is there. No node is ever left behind.
//
// The transaction that creates the node also writes to the directory, so the directory's Stat as of that very
// moment comes back with it. If the answer is lost, the node is looked for by a uuid that no other attempt has.
package node
