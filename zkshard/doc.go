// Package zkshard divides names among several ZooKeeper ensembles, for more locks than one ensemble carries. docs/scale.md
// says when that is, and what to try first.
//
// [Connect] opens a session with each ensemble. [Shards.For] is the session of a path, [Shards.NewMutex] a lock that stays
// exclusive while a rollout changes the list of ensembles: first [WithMoving] is added to the new list, then it is removed.
package zkshard

// # Why no name has two holders
//
// An ensemble is named by a random id, in a record that also has the list that is in force, as names, and its generation: a
// number that grows by 1 with each move. A name is locked on the ensemble that its hash chooses among the names of a list, so
// processes with one list exclude each other, as do processes that move to or from a list and those with it, since the former
// hold the locks of both. Only processes with the list of generation g, and those with g+1, might not.
//
// A process has an ephemeral node on each ensemble, created in each ZooKeeper session before any call may begin there (admit),
// in the directory list-g, or move-g+1 if it moves from g to g+1. So all that a process holds on an ensemble ends on the
// servers together with that node, and the directory is the permission: without the directory the servers refuse the node,
// and the directory cannot be deleted while it has a node. A process that was cut off finds the directory gone when it is back.
//
// A move from the list F of generation g to T passes through these stages on each ensemble of both:
//
//	open    list-g is there: processes with F
//	moving  list-g, move-g+1: the first process that moves has added its directory, in one transaction with the record
//	closed  move-g+1: list-g was empty, and was deleted. An ensemble that is not in F begins here
//	open    move-g+1, list-g+1: processes with T. An ensemble that is not in T stays closed
//
// Each step is one transaction that names the version of the record, so a stage never comes back in one generation. There is no
// transaction across ensembles. Instead the order of the steps is fixed: list-g+1 is created only by a process that has seen every
// ensemble of F and T in the stage closed of this move. That is: list-g is gone for good everywhere before list-g+1 exists
// anywhere. It holds whatever dies, or is cut off, between two steps: what was done stays, each process that moves can go
// on with the next step, and a step that comes late finds a changed version. One ensemble that is open shows that all were
// closed, so then every process may open the others, also those that were down.
//
// The same order keeps apart the processes that move from g to g+1 and those with g+2: the first step of the next move deletes
// move-g+1, which must be empty, on each ensemble of T, without which none of the former holds a lock of T. It also refuses two moves at
// once, so all processes that hold two locks lock in the same order, the old one first, and those with one wait for no other.
//
// The first list is a move from no ensemble: each ensemble is claimed (closed), and once all are, opened.
//
// What was begun cannot be undone. So ensembles are claimed in the order of their names, and a move begins on the one with the
// least name: otherwise two lists that begin at once might each have a part of what the other needs.
