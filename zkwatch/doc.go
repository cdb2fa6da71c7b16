// Package zkwatch follows nodes of any program: their data ([Data]), their children ([Children]), and whole trees ([Tree]),
// through disconnects and new sessions. [Keep] keeps a node of this process there.
//
// Nothing is told twice, and nothing goes back: each state is newer than the one before. States that follow each other
// quickly may be told as one, the last one. docs/watch.md says what it costs.
package zkwatch
