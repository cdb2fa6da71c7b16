// Package elements keeps elements in order on the servers, and the claims of those who work on them: a queue of any
// bytes. It is a directory with a node for each element, and one with a node for each claim.
//
// # The nodes
//
// The data of the base node is its terms. Below it there are
//
//	elements   one node for each element, with its value. The version of a node counts its deliveries.
//	           In a bounded queue each new element writes to the directory, whose version so tells of it
//	claims     one ephemeral node for each element that is being delivered: see claimName.
//	           Each element with a priority writes to the directory
//	takers     the queue of those who wait for an element
//	putters    the queue of those who wait for room
//	writers    see package writers
//
// # An element is delivered to one at a time
//
// To take an element is to delete its node at the version that was read. To claim it is to write to its node at that
// version, and to make a claim. The servers do either in one transaction, so of two who have read the same version one is
// refused. Once an element was delivered, the transaction also checks that the claim of its last delivery is gone.
//
// # Elements are delivered in order
//
// The order is that of the names: by priority, then by the number that the servers gave to the node, which they do in the
// order in which they make the nodes. Whoever delivers an
// element has listed the claims and then the elements (a view), and takes the first that is free and due. What
// changes after the listing cannot bring another element before it unseen: see [View], which has the argument.
//
// # A bound holds
//
// A new element is put at a version of the directory at which there was room. Only another new element makes the
// directory fuller, and changes the version. So of two who have seen the same room one is refused.
//
// # What is left to the caller
//
// This package neither waits nor tries again: [ErrAgain] says that it is time to look again. Package zkqueue has the values,
// the leases, and the lines of those who wait. The lines are for fairness and cost only: what is said above holds without them.
package elements
