package zksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// rival is a recipe of another library that decides the same thing at the same path, but does not
// heed our nodes: beside it both would hold, so we refuse.
type rival struct {
	node func(name string) bool // whether a child of the path is one of its nodes
	what string                 // what both would do
}

// latches are the nodes of Curator's LeaderLatch, `_c_<uuid>-latch-<seq>`. A latch orders all children by
// what stands behind "latch-" in their names. In ours that stands nowhere, so they come last, and
// we cannot take part in its queue: a name that it ranks among its own would not be ranked by
// Curator's InterProcessMutex and LeaderSelector, which go with ours.
var latches = &rival{
	node: func(name string) bool {
		_, seq, found := strings.Cut(name, "-latch-")
		_, numbered := queue.ParseSequence(seq)
		return found && numbered
	},
	what: "Curator's LeaderLatch, which does not heed our candidates: both would lead",
}

// leases are what other libraries' semaphores have below their path: InterProcessSemaphoreV2 of
// Curator the directory "leases", its predecessor entries of a lock, kazoo's Semaphore nodes named by
// a uuid without dashes.
var leases = &rival{
	node: func(name string) bool {
		uuid, rest := queue.CutUUID(name, queue.BareUUIDLen)
		_, contends := queue.ParseEntry(name)
		return name == "leases" || contends || uuid != "" && rest == ""
	},
	what: "a semaphore of Curator or kazoo, which does not count our permits: both would grant them",
}

// refuse is an error if any of the children is one of the rival's.
func (r *rival) refuse(children []string) error {
	if r == nil {
		return nil
	}
	var found []string
	for _, name := range children {
		if r.node(name) {
			found = append(found, errs.Quote(name))
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	if more := len(found) - 3; more > 0 {
		found = append(found[:3], fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%w: below the path is %s, of %s; use another path", ErrMisuse, strings.Join(found, ", "), r.what)
}

// refuseAt is refuse for the children of a node on the servers.
func (r *rival) refuseAt(ctx context.Context, e *zkconn.Epoch, node string) error {
	names, _, err := e.Children(ctx, node)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	return r.refuse(names)
}
