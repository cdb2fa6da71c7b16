package zksemaphore

import (
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// rivals are the nodes of other libraries' semaphores below their path: a directory "leases" of Curator's
// InterProcessSemaphoreV2, entries of a lock of its predecessor, and nodes of kazoo's Semaphore, whose names are
// a uuid without dashes.
var rivals = &queue.Rival{
	Type: layout.Semaphore,
	Node: func(name string) bool {
		uuid, rest := queue.CutUUID(name, queue.BareUUIDLen)
		_, contends := queue.ParseEntry(name)
		return name == "leases" || contends || uuid != "" && rest == ""
	},
	What: "a semaphore of Curator or kazoo, which does not count our permits: both would grant them",
}
