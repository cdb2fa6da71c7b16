package zksemaphore

import "github.com/go-menagerie/menagerie/internal/queue"

// rivals are what other libraries' semaphores have below their path: InterProcessSemaphoreV2 of
// Curator the directory "leases", its predecessor entries of a lock, kazoo's Semaphore nodes named by
// a uuid without dashes.
var rivals = &queue.Rival{
	Node: func(name string) bool {
		uuid, rest := queue.CutUUID(name, queue.BareUUIDLen)
		_, contends := queue.ParseEntry(name)
		return name == "leases" || contends || uuid != "" && rest == ""
	},
	What: "a semaphore of Curator or kazoo, which does not count our permits: both would grant them",
}
