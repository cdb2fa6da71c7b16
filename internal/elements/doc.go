// Package elements keeps elements in order on the servers, and the claims of those who work on them: a queue of any
// bytes. It is a directory with a node for each element, and one with a node for each claim.
//
// # The nodes
//
// The data of the base node is its terms. Below it there are
//
//	elements   one node for each element, with its value. The version of a node counts its deliveries.
//	           Each new element with a priority of 0 or more writes to the directory, whose version so tells of
//	           it; in a bounded queue all do
//	claims     one ephemeral node for each element that is being delivered: see claimName.
//	           Each element with a priority below 0, and each that is given back, writes to the directory
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
// # Consumers work side by side
//
// The goroutines of one object share one view, and each takes the next element of it ([Search]): a queue of any length is listed
// once, and nobody waits for the claim of another. Two of them get their elements in the order of the view, though
// the servers may make the later claim first: both calls are under way then.
//
// Objects of several processes have views of their own. Whoever finds that an element was taken by others goes on in its view,
// and does not list again: a miss costs one request, and a listing of n names about as much as n/64. So in a queue of any
// length a delivery costs the same. Only after as many misses in a row, and a second after it has met others, an object lists again.
// (What others took may have come free with the end of their session. Nobody tells of that.)
//
// Each of n objects that take every element in order would meet the elements of all others, n-1 requests for each of
// its own. So where others are quicker twice within a second, and not before, an object may leave the order (crowd): of
// each block of elements it takes those of a lane that it has found by chance and nobody else works on. So n objects spread
// over the lanes, and few requests are in vain. Each element is still in the way of its object, which comes back to the head with the next
// view, at the latest after a second and at the end of the view. So none is left for ever. An object that has looked for a lane in
// vain goes twice as far the next time. So one that is slower than the others is ahead of them after a few attempts.
// In a short queue (many) there is no crowd: there the order counts more than the requests.
//
// # Nobody starves
//
// A call that two views of its own did not help, and one that finds nothing, stands in line. Whoever lists sees the line
// and stands behind. So in the end all others are behind the first in line, or have views from before. Those views are used for a
// second at most, or up to their end, where others were met. If the first in line is slow, the head of a view is
// taken before it comes; it then tries one further into its view, where no other has been yet, and lists again. Without others it gets the
// first element. Elements that go first, or are given back, could refuse each of its views. So a call that was
// refused for that reason in a view of its own does without the check: its element was the first when the view was made.
//
// # A bound holds
//
// A new element is put at a version of the directory at which there was room. Only another new element makes the
// directory fuller, and changes the version. So of two who have seen the same room one is refused.
//
// # What is left to the caller
//
// This package neither waits nor tries again: [ErrAgain] says that it is time to look again. Package zkqueue has the values,
// the leases, and the lines of those who wait. That an element is delivered to one at a time, and the bound, hold without the lines.
package elements
