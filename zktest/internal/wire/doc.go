// Package wire is what clients and a ZooKeeper server say to each other: the codes of operations, results and events, the
// requests as they are decoded, and the fields of replies.
//
// A request becomes a [Call], whatever is wrong with its body: the real server notices that late, when it has given the
// request a place in its history.
package wire
