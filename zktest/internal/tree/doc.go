// Package tree is what a server's history has made of its nodes, and the rules by which a request becomes a transaction.
//
// There are two stages, as in the real server. A [Proposal] prepares a request: it checks it against the tree and against the
// [Outstanding] changes, those that are prepared and not committed, and decides everything. [Tree.Apply] carries out what
// was decided, when it is committed. Between the two, other requests may be prepared, and each sees what those in front of it
// will do. Some behaviour at the limits of counters, and of access control, can be seen only between the stages.
//
// It knows no connections, watches or clocks: whoever proposes says who asks, and when.
package tree
