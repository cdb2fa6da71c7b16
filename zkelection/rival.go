package zkelection

import (
	"strings"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// latches are the nodes of Curator's LeaderLatch, `_c_<uuid>-latch-<seq>`. A latch orders all children by
// the text behind "latch-" in their names. Our names do not have it, so they come last, and
// we cannot take part in its queue: Curator's InterProcessMutex and LeaderSelector, which use the same paths as ours,
// would not rank a name with it.
var latches = &queue.Rival{
	Node: func(name string) bool {
		_, seq, found := strings.Cut(name, "-latch-")
		_, numbered := queue.ParseSequence(seq)
		return found && numbered
	},
	What: "Curator's LeaderLatch, which ignores our candidates: both would lead",
}
