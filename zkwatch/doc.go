// Package zkwatch follows nodes of any program: their data ([Data]), their children ([Children]), and whole trees ([Tree]),
// through disconnects and new sessions. [Keep] keeps a node of this process.
//
// Each state is newer than the one before. If states follow each other quickly, some are skipped, but never the last one. A
// loop does no I/O before it is ranged over, and can be ranged over more than once. It leaves no watch behind, and ends with an
// error, which is yielded last.
//
// docs/watch.md has the costs.
package zkwatch
