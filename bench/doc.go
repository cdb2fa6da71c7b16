// Package bench compares peers, that is, implementations of locks and meeting points, in one run against the
// same servers.
//
// The peers take turns in short slices, and who begins moves on, so that whatever else the machine does hits all of
// them alike. A run has rounds, and a result is the median over the rounds with its spread: one disturbed
// round does not change it. A ratio between two peers is the median of the ratios within the rounds.
//
// A Peer that runs in this process is made of openers (NewPeer): they give the clients of a slice, and this package
// drives and measures them. A peer that runs elsewhere implements Peer itself.
package bench
