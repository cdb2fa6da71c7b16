// Package zkwatch follows nodes of any program: their data ([Data]), their children ([Children]), and whole
// trees ([Tree]), through disconnects and new sessions. [Keep] keeps a node of this process.
//
// Each state is newer than the one before. Some may be skipped, but never the last one. A loop can be ranged
// over more than once. It ends with an error, which is yielded last. docs/watch.md has more, and the
// requests.
package zkwatch
