// Package rounds is for workers that divide items among each other: which item belongs to which worker ([Division]), and
// which items are done ([Worker]). It does not know the locks of the items.
//
// A round is the list of the items that are done. Its name is a uuid. It lasts while it has a worker: an ephemeral node in the
// directory of workers, whose data name the worker's list of items, and the items that have failed there. The data of the
// directory are the uuid. To begin or to end a round is to delete that directory and to make it again, in one transaction. The
// servers refuse to delete a directory that has children, so a round never ends while it has a worker. A worker that
// joins checks in the same transaction that the round is open.
//
//	working/*            the workers
//	open-<uuid>          exists while the round is open
//	round-<uuid>/list-*  the lists of its workers
//	round-<uuid>/item-*  the items that are done
//
// If the last worker has died, its node goes later, and no worker ends the round. The next worker ends it, and begins a new one.
package rounds
