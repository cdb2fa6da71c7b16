package layout

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// first are the recipes of other libraries whose nodes must be noticed even if ours are beside them.
var first = []kind{
	{"LeaderLatch of Curator", child(`_c_[0-9a-f-]{36}-latch-\d{10}`)},
}

// foreign are the other recipes of Curator 5.4, kazoo 2.8 and the Java menagerie that can be told by their nodes. A node without
// data and children, such as a Barrier of kazoo, says nothing, and neither do names that their users choose.
var foreign = []kind{
	{"semaphore of Curator (InterProcessSemaphoreV2 or InterProcessSemaphoreMutex)", func(data []byte, c []string) bool {
		return slices.Contains(c, "leases") && children("leases", "locks")(data, c)
	}},
	{"DistributedDoubleBarrier of Curator or DoubleBarrier of kazoo", func(data []byte, c []string) bool {
		return slices.Contains(c, "ready") && party(data, c)
	}},
	{"DistributedQueue of Curator or ZkBlockingQueue of the Java menagerie", child(`queue-.*\d{10}`)},
	{"SimpleDistributedQueue of Curator", child(`qn-\d{10}`)},
	{"DistributedBarrier, or an empty DistributedQueue, of Curator", alone(isAddress)},
	{"SharedCount or DistributedAtomicInteger of Curator", alone(binary(4))},
	{"DistributedAtomicLong of Curator", alone(binary(8))},

	{"Party of kazoo", child(`[0-9a-f]{32}(?:__party__\d{10}|-.+)`)},
	{"Semaphore of kazoo", func(data []byte, c []string) bool { return isNumber(data) && party(data, c) }},
	{"Queue of kazoo", child(`entry-\d{3}-\d{10}`)},
	{"LockingQueue of kazoo", func(data []byte, c []string) bool {
		return len(c) == 2 && children("entries", "taken")(data, c)
	}},
	{"Counter of kazoo", alone(isNumber)},
	{"NonBlockingLease of kazoo", keys("holder", "end")},

	{"ReentrantZkLock of the Java menagerie", child(`lock-(?:.*-)?\d{10}`)},
	{"ReentrantZkReadWriteLock, ZkHashMap or ZkListSet of the Java menagerie", child(`(?:(?:read|write)Lock-+|bucket-|setEntry-)\d{10}`)},
	{"ZkCondition of the Java menagerie", child(`condition-\d{10}`)},
	{"ZkCountDownLatch of the Java menagerie", child(`countDownLatch-\d{10}|countDown-latchReady`)},
	{"ZkCyclicBarrier of the Java menagerie", child(`party-\d{10}|cyclicBarrier-[A-Z_]+`)},
	{"ZkSemaphore of the Java menagerie", child(`permit-\d{10}`)},
	{"ZkLeaderElector of the Java menagerie", child(`election-.*\d{10}`)},
}

// Suspect returns a child whose name alone says nothing, and the recipe of which it is a node if it is ephemeral: users may
// have persistent nodes of such names. The child is "" if there is none.
func Suspect(asked string, children []string) (child, recipe string) {
	for _, c := range children {
		switch {
		case party(nil, []string{c}):
			return c, "DistributedDoubleBarrier of Curator, or Semaphore or DoubleBarrier of kazoo"
		case asked == Group && !strings.HasPrefix(c, "_c_"):
			child, recipe = c, "GroupMember of Curator"
		}
	}
	return child, recipe
}

// party accepts a path with a child whose name is a uuid. That alone says nothing: users have such names, too.
var party = child(`[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// isNumber accepts a number as text.
var isNumber = regexp.MustCompile(`^-?\d+(?:\.\d+)?$`).Match

// child accepts a path with a child whose whole name matches.
func child(pattern string) func([]byte, []string) bool {
	whole := regexp.MustCompile(`^(?:` + pattern + `)$`)
	return func(_ []byte, children []string) bool { return slices.ContainsFunc(children, whole.MatchString) }
}

// alone accepts a node without children that has such data.
func alone(data func([]byte) bool) func([]byte, []string) bool {
	return func(d []byte, children []string) bool { return len(children) == 0 && data(d) }
}

// isAddress accepts what Curator writes to a node if it is given no data: the address of the host.
func isAddress(data []byte) bool {
	_, err := netip.ParseAddr(string(data))
	return err == nil
}

// binary accepts a number of so many bytes, which is no text.
func binary(size int) func([]byte) bool {
	return func(data []byte) bool {
		return len(data) == size && strings.ContainsFunc(string(data), func(r rune) bool { return r < ' ' || r == '\ufffd' })
	}
}
