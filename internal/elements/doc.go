// Package elements keeps elements in order on the servers, and the claims of the consumers that work on them: a queue of any
// bytes. Package zkqueue has the values, the leases, and the waiting. That an element is delivered to one at a time, and the
// bound, hold without the lines.
//
// # The nodes
//
// The data of the base node is its terms. Below it there are
//
//	elements   one node for each element, with its value. The version of a node counts its deliveries.
//	           Each new element with a priority of 0 or more writes to the directory; in a bounded queue all do
//	claims     one ephemeral node for each element that is being delivered: see claimName.
//	           Each element with a priority below 0, and each that is given back, writes to the directory
//	takers     the queue of calls that wait for an element
//	putters    the queue of calls that wait for room
//	writers    see package writers
//	dead       the dead letters, since the first one; no consumer lists them
//
// # An element is delivered to one at a time
//
// To take an element is to delete its node at the version that was read. To claim it is to write to its node at that
// version, and to make a claim. The servers do either in one transaction, so of two calls that have read the same version one
// is refused. Once an element was delivered, the transaction also checks that the claim of its last delivery is gone.
//
// # Elements are delivered in order
//
// The order is by priority, then by the number that the servers gave to the node. A call lists the claims and then the
// elements (a view), and takes the first that is free and due. What changes after the listing cannot bring another
// element before it unseen: see [View], which has the argument.
//
// # Consumers work side by side
//
// The goroutines of one object share one view, and each takes the next element of it. Objects of several processes have views
// of their own. A call that finds an element taken goes on in its view: a miss costs one request, and a listing of n names
// about as much as n/64. An object lists again only after as many misses in a row, and a second after it has met others: what
// these have taken may have come free with the end of their session, of which nothing is written.
//
// Each of n objects that take every element in order would meet the elements of all others: n-1 requests for each of
// its own. So where others were quicker twice within a second, an object may leave the order (crowd): of
// each block of elements it takes those of a lane that it has found by chance and no other works on. Each element
// is still in the way of its object, which comes back to the head with the next view, after a second or at the end of the view.
// An object that has looked for a lane in vain goes twice as far the next time, so one that is slower gets ahead of the others.
//
// # No call starves
//
// A call that two views of its own did not help, and one that finds nothing, stands in line. Calls that list see the line
// and stand behind. So in the end all others are behind the first in line, or have views from before, which are used for a
// second at most, or up to their end. If the first in line is slow, the head of a view is taken before it comes; it then tries
// one further into its view, where no other has been yet, and lists again. Elements that go first, or are given back, could
// refuse each of its views. So a call that was refused for that reason in a view of its own does without the check: its element
// was the first when the view was made.
//
// # A bound holds
//
// A new element is put at a version of the directory at which there was room. Only another new element makes the
// directory fuller, and changes the version. So of two calls that have seen the same room one is refused.
package elements
