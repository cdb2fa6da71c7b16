package layout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
)

func TestTheNodesOfAPathTellItsType(t *testing.T) {
	const entry = "_c_2d4a1c1e-6f0f-8b7e-9d4f-5a1b2c3d4e5f"
	for _, c := range []struct {
		want, data string
		children   []string
	}{
		{"", "", nil},
		{"", "somebody's", []string{"zkmapper", "lock-x", "README", "phase-1", "closed-of-3x"}},
		{"zklatch", entry + "-lock-", []string{entry + "-lock-0000000003", "counts", "closed-of-3"}},
		{"zkbarrier.DoubleBarrier", `{"parties":3}`, []string{"parties"}},
		{Map, entry + "-lock-", []string{entry + "-lock-0000000003", Map}},
		{Set, `{"total":3}`, []string{Set}},
		{"zklatch", `{"total":3}`, []string{"counts"}},
		{"zkbarrier", `{"parties":3,"generation":2}`, nil},
		{"zkphaser", `{"phase":3}`, nil},
		{"zksemaphore", `{"permits":3,"capacity":3}`, []string{"queue"}},
		{"zksemaphore", `{"permits":3}`, nil},
		{"zksync.Mutex", entry + "-lock-", []string{entry + "-lock-0000000003", "README"}},
		{"zkrwmutex", "", []string{entry + "-__WRIT__0000000003"}},
		{"zkcond", "", []string{entry + "-wait-0000000000000001-00000001"}},
		{"zklatch.Gate", "", []string{"closed"}},
		{"zkwaitgroup", "", []string{"dead", "round"}},
		{"zkonce", "", []string{"result"}},
	} {
		require.Equal(t, c.want, TypeOf([]byte(c.data), c.children), "%s %v", c.data, c.children)
	}
	for _, data := range []string{"", "somebody's", "10.0.0.x"} {
		require.NoError(t, RefuseOther(Gate, []byte(data), []string{"locks", "0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d"}))
	}
	require.NoError(t, RefuseOther(Election, nil, []string{entry + "-lock-0000000003"}))
	require.NoError(t, RefuseAllBut(RWMutex, []byte(entry+"-lock-"), nil))
	require.ErrorIs(t, RefuseOther(Gate, []byte(entry+"-lock-"), nil), errs.ErrMisuse)
	require.EqualError(t, RefuseAllBut(Mutex, []byte("somebody's"), []string{"README"}),
		`the node has data that are not those of a zksync.Mutex, "somebody's"; use another path, or delete the data: misuse`)
	err := Refuse(Map, Queue)
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.EqualError(t, err, "the path is that of a zkqueue, not of a zkmap; use another path: misuse")
}

func TestTheNodesOfOtherLibrariesTellTheirRecipe(t *testing.T) {
	const (
		entry = "_c_2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f"
		uuid  = "2d4a1c1e-6f0f-4b7e-9d4f-5a1b2c3d4e5f"
		hex   = "2d4a1c1e6f0f4b7e9d4f5a1b2c3d4e5f"
	)
	for _, c := range []struct {
		want, data string
		children   []string
	}{
		{"LeaderLatch of Curator", "", []string{entry + "-lock-0000000003", entry + "-latch-0000000004"}},
		{"semaphore of Curator (InterProcessSemaphoreV2 or InterProcessSemaphoreMutex)", "", []string{"locks", "leases"}},
		{"", "", []string{"locks", "leases", "README"}},
		{"", "", []string{"locks"}},
		{"DistributedDoubleBarrier of Curator or DoubleBarrier of kazoo", "", []string{uuid, "ready"}},
		{"DistributedDoubleBarrier of Curator or DoubleBarrier of kazoo", "", []string{hex, "ready"}},
		{"", "", []string{uuid, hex}},
		{"DistributedQueue of Curator or ZkBlockingQueue of the Java menagerie", "", []string{"queue-0000000000"}},
		{"DistributedQueue of Curator or ZkBlockingQueue of the Java menagerie", "", []string{"queue-|id|0000000000"}},
		{"SimpleDistributedQueue of Curator", "", []string{"qn-0000000000"}},
		{"DistributedBarrier, or an empty DistributedQueue, of Curator", "10.0.0.17", nil},
		{"DistributedBarrier, or an empty DistributedQueue, of Curator", "fe80::1", nil},
		{"SharedCount or DistributedAtomicInteger of Curator", "\x00\x00\x00\x07", nil},
		{"", "true", nil},
		{"DistributedAtomicLong of Curator", "\x00\x00\x00\x00\x00\x00\x00\x07", nil},
		{"Party of kazoo", "", []string{hex + "__party__0000000000"}},
		{"Semaphore of kazoo", "5", []string{hex}},
		{"Counter of kazoo", "-17", nil},
		{"Queue of kazoo", "", []string{"entry-100-0000000000"}},
		{"LockingQueue of kazoo", "", []string{"entries", "taken"}},
		{"NonBlockingLease of kazoo", `{"version":1,"holder":"a","end":"x"}`, nil},
		{Mutex, "", []string{hex + "__lock__0000000000"}},
		{Mutex, "", []string{hex + "-lock-0000000000"}},
		{"ReentrantZkLock of the Java menagerie", "", []string{"lock-0000000000"}},
		{"ReentrantZkLock of the Java menagerie", "", []string{"lock-web-3-17-0000000000"}},
		{"ReentrantZkReadWriteLock, ZkHashMap or ZkListSet of the Java menagerie", "", []string{"readLock--0000000000"}},
		{"ZkCondition of the Java menagerie", "", []string{"condition-0000000000"}},
		{"ZkCountDownLatch of the Java menagerie", "", []string{"countDown-latchReady"}},
		{"ZkCyclicBarrier of the Java menagerie", "", []string{"party-0000000000"}},
		{"ZkSemaphore of the Java menagerie", "", []string{"permit-0000000000"}},
		{"ZkLeaderElector of the Java menagerie", "", []string{"election-10.0.0.1-0000000000"}},
	} {
		require.Equal(t, c.want, TypeOf([]byte(c.data), c.children), "%q %v", c.data, c.children)
	}
}
