package zkelection

import (
	"strings"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// latches are the nodes of Curator's LeaderLatch, `_c_<uuid>-latch-<seq>`. A latch orders all children by
// what stands behind "latch-" in their names. In ours that stands nowhere, so they come last, and
// we cannot take part in its queue: a name that it ranks among its own would not be ranked by
// Curator's InterProcessMutex and LeaderSelector, which go with ours.
var latches = &queue.Rival{
	Node: func(name string) bool {
		_, seq, found := strings.Cut(name, "-latch-")
		_, numbered := queue.ParseSequence(seq)
		return found && numbered
	},
	What: "Curator's LeaderLatch, which does not heed our candidates: both would lead",
}
