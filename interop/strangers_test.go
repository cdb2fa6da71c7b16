package interop

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkatomic"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// stranger is a recipe of Curator's that cannot share its path with ours of the same purpose.
type stranger struct {
	curator  string // its kind in mixed/Half.java
	argument string
	first    string // what Curator's half does on a path of its own, with ; in between
	ours     func(ctx context.Context, s *zksync.Session, path string) error
	takes    string // an argument on a path that ours already has
	late     string // and what Curator's half does there
	answers  string // with what outcome
	refusal  string // what ours says on Curator's path, if it does not know whose it is
}

func tryLock(ctx context.Context, s *zksync.Session, path string) error {
	_, err := zksync.NewMutex(s, path).TryLockContext(ctx)
	return err
}

func acquire(ctx context.Context, s *zksync.Session, path string) error {
	_, err := zksemaphore.NewWeighted(s, path, 2).TryAcquireLease(ctx, 1)
	return err
}

func campaign(ctx context.Context, s *zksync.Session, path string) error {
	_, err := zkelection.New(s, path, zkelection.Candidate{ID: "go"}).TryCampaign(ctx)
	return err
}

func closeGate(ctx context.Context, s *zksync.Session, path string) error {
	return zklatch.NewGate(s, path).Close(ctx)
}

func waitAtGate(ctx context.Context, s *zksync.Session, path string) error {
	return zklatch.NewGate(s, path).Wait(ctx)
}

func enterBarrier(ctx context.Context, s *zksync.Session, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return zkbarrier.NewDoubleBarrier(s, path, 2).Enter(ctx)
}

func add(ctx context.Context, s *zksync.Session, path string) error {
	_, err := zkatomic.NewInt64(s, path).Add(ctx, 1)
	return err
}

func store(ctx context.Context, s *zksync.Session, path string) error {
	return zkatomic.NewValue[string](s, path).Store(ctx, "go")
}

func load(ctx context.Context, s *zksync.Session, path string) error {
	_, _, err := zkatomic.NewValue[string](s, path).Load(ctx)
	return err
}

func next(ctx context.Context, s *zksync.Session, path string) error {
	_, err := zkatomic.NewSequence(s, path).Next(ctx)
	return err
}

func put(ctx context.Context, s *zksync.Session, path string) error {
	return zkqueue.New[string](s, path).Put(ctx, "go")
}

func tryTake(ctx context.Context, s *zksync.Session, path string) error {
	_, _, err := zkqueue.New[string](s, path).TryTake(ctx)
	return err
}

func storeEntry(ctx context.Context, s *zksync.Session, path string) error {
	return zkmap.New[string, string](s, path).Store(ctx, "id", "go")
}

func join(ctx context.Context, s *zksync.Session, path string) error {
	_, err := zkgroup.New(s, path).Join(ctx, zkgroup.Member{ID: "go"})
	return err
}

func members(ctx context.Context, s *zksync.Session, path string) error {
	_, err := zkgroup.New(s, path).Members(ctx)
	return err
}

// The answers are what Curator makes of a path that ours has. It never refuses one.
var strangers = map[string]stranger{
	"InterProcessSemaphoreMutex":      {curator: "semaphore-mutex", first: "enter", ours: tryLock, late: "try long", answers: "true"},
	"InterProcessSemaphoreV2":         {curator: "semaphore", argument: "1", first: "enter", ours: acquire, late: "try long", answers: "true"},
	"InterProcessSemaphoreV2, a lock": {curator: "semaphore", argument: "1", first: "enter", ours: tryLock, late: "try long", answers: "true"},
	"InterProcessMutex, a semaphore":  {curator: "mutex", first: "enter", ours: acquire, late: "try long", answers: "true"},
	"LeaderLatch":                     {curator: "latch", first: "enter", ours: campaign, late: "try long", answers: "true"},
	"LeaderLatch, a lock":             {curator: "latch", first: "enter", ours: tryLock, late: "try long", answers: "true"},
	"DistributedBarrier, a wait":      {curator: "barrier", first: "close", ours: waitAtGate, late: "try long", answers: "true"},
	"DistributedBarrier":              {curator: "barrier", first: "close", ours: closeGate, late: "try", answers: "false"},
	"DistributedDoubleBarrier":        {curator: "double-barrier", argument: "2", first: "try", ours: enterBarrier, late: "try long", answers: "true", refusal: "the data of the node are not those of a zkbarrier.DoubleBarrier"},
	"SharedCount":                     {curator: "shared-count", first: "enter;write 11", ours: add, late: "enter", answers: "NullPointerException"},
	"DistributedAtomicInteger":        {curator: "atomic-integer", first: "add", ours: add, late: "read;add", answers: "0;1"},
	"DistributedAtomicLong":           {curator: "atomic-long", first: "add", ours: add, late: "read;add", answers: "0;1"},
	"SharedValue":                     {curator: "shared-value", first: "enter;write java", ours: store, late: "enter", answers: "NullPointerException", refusal: "data that are not those of a zkatomic.Value"},
	"SharedValue, a read":             {curator: "shared-value", first: "enter;write java", ours: load, late: "enter;read", answers: ";seed", refusal: "data that are not those of a zkatomic.Value"},
	"DistributedAtomicValue":          {curator: "atomic-value", first: "write java", ours: store, late: "read", answers: "none", refusal: "data that are not those of a zkatomic.Value"},
	"CachedAtomicInteger":             {curator: "cached-integer", first: "next", ours: next, late: "next", answers: "1"},
	"CachedAtomicLong":                {curator: "cached-long", first: "next", ours: next, late: "next", answers: "1"},
	"DistributedQueue":                {curator: "queue", first: "write java", ours: put, takes: "takes", late: "read", answers: "none"},
	"DistributedQueue, a take":        {curator: "queue", first: "write java", ours: tryTake, takes: "takes", late: "read", answers: "none"},
	"DistributedIdQueue":              {curator: "id-queue", first: "write java", ours: storeEntry, takes: "takes", late: "read", answers: "none"},
	"DistributedPriorityQueue":        {curator: "priority-queue", first: "write java", ours: put, takes: "takes", late: "read", answers: "none"},
	"DistributedDelayQueue":           {curator: "delay-queue", first: "write java", ours: put, takes: "takes", late: "read", answers: "none"},
	"SimpleDistributedQueue":          {curator: "simple-queue", first: "write java", ours: put, late: "read", answers: "none"},
	"GroupMember":                     {curator: "group", first: "enter", ours: join, late: "enter;list", answers: ";java"},
	"GroupMember, a list":             {curator: "group", first: "enter", ours: members, late: "enter;list", answers: ";java"},
}

// script has a peer do one thing after the other, and returns the answers.
func (p peer) script(lines string) string {
	var answers []string
	for line := range strings.SplitSeq(lines, ";") {
		text, err := p.try(strings.Fields(line)...)
		if err != nil {
			text = err.Error()
		}
		answers = append(answers, text)
	}
	return strings.Join(answers, ";")
}

func TestOursRefusesThePathsOfCuratorThatItCannotShare(t *testing.T) {
	t.Parallel()
	peers(t)
	for kind, start := range targets {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			on := start(t)
			h := startHalf(t, on)
			s, err := zksync.Connect(t.Context(), on.addr(), zksync.WithTimeout(lifetime))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			for name, c := range strangers {
				t.Run(name, func(t *testing.T) { c.meet(t, h, s, strings.NewReplacer(" ", "-", ",", "").Replace(name)) })
			}
		})
	}
}

// meet has both halves use a path, once with Curator's first and once with ours first.
func (c stranger) meet(t *testing.T, h *half, s *zksync.Session, name string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	theirs := h.open(c.curator, "/theirs/"+name, c.argument)
	theirs.script(c.first)
	err := c.ours(ctx, s, "/theirs/"+name)
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.ErrorContains(t, err, cmp.Or(c.refusal, "Curator"))

	if err := c.ours(ctx, s, "/ours/"+name); !errors.Is(err, context.DeadlineExceeded) {
		require.NoError(t, err)
	}
	late := h.open(c.curator, "/ours/"+name, c.argument+c.takes)
	require.Contains(t, late.script(c.late), c.answers)
}
