// Package rounds is for workers that divide items among each other: which item belongs to which worker ([Division]), and
// which items are done ([Worker]). The locks of the items are not its business.
//
// A round is the record of which items are done. It is named by a uuid, and lasts as long as somebody works on it: a
// worker has an ephemeral node in the directory of workers, whose data name the worker's list of items, and those with which it
// has failed. The data of the
// directory are the uuid. To begin or to end a round is to delete that directory and to make it again, in one transaction. The
// servers refuse to delete a directory that has children, so a round never ends while somebody works on it. A worker that
// joins checks in the same transaction that the round is open.
//
//	working/*            the workers
//	open-<uuid>          exists while the round is open
//	round-<uuid>/list-*  the lists of its workers
//	round-<uuid>/item-*  the items that are done
//
// If the node of a worker that has died goes after the last other worker has left, nobody is there to end the round. The
// next worker ends it, and begins a new one.
package rounds
