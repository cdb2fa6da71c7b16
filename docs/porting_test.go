package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The public types of java.util.concurrent and its packages locks and atomic, of JDK 17, without nested ones.
const concurrent = `
AbstractExecutorService ArrayBlockingQueue BlockingDeque BlockingQueue BrokenBarrierException Callable CancellationException
CompletableFuture CompletionException CompletionService CompletionStage ConcurrentHashMap ConcurrentLinkedDeque
ConcurrentLinkedQueue ConcurrentMap ConcurrentNavigableMap ConcurrentSkipListMap ConcurrentSkipListSet CopyOnWriteArrayList
CopyOnWriteArraySet CountDownLatch CountedCompleter CyclicBarrier DelayQueue Delayed Exchanger ExecutionException Executor
ExecutorCompletionService ExecutorService Executors Flow ForkJoinPool ForkJoinTask ForkJoinWorkerThread Future FutureTask
LinkedBlockingDeque LinkedBlockingQueue LinkedTransferQueue Phaser PriorityBlockingQueue RecursiveAction RecursiveTask
RejectedExecutionException RejectedExecutionHandler RunnableFuture RunnableScheduledFuture ScheduledExecutorService
ScheduledFuture ScheduledThreadPoolExecutor Semaphore SubmissionPublisher SynchronousQueue ThreadFactory ThreadLocalRandom
ThreadPoolExecutor TimeUnit TimeoutException TransferQueue
AbstractOwnableSynchronizer AbstractQueuedLongSynchronizer AbstractQueuedSynchronizer Condition Lock LockSupport
ReadWriteLock ReentrantLock ReentrantReadWriteLock StampedLock
AtomicBoolean AtomicInteger AtomicIntegerArray AtomicIntegerFieldUpdater AtomicLong AtomicLongArray AtomicLongFieldUpdater
AtomicMarkableReference AtomicReference AtomicReferenceArray AtomicReferenceFieldUpdater AtomicStampedReference
DoubleAccumulator DoubleAdder LongAccumulator LongAdder`

var firstCell = regexp.MustCompile("(?m)^\\| `(\\w+)`")

func TestEachTypeOfJavaUtilConcurrentHasOneRow(t *testing.T) {
	types := strings.Fields(concurrent)
	require.Len(t, types, 86)
	text := read(t, "porting/java.md")
	rows := make(map[string]int)
	for _, m := range firstCell.FindAllStringSubmatch(text, -1) {
		rows[m[1]]++
	}
	for _, name := range types {
		assert.Equal(t, 1, rows[name], name)
		delete(rows, name)
	}
	assert.Empty(t, rows, "no type of java.util.concurrent")
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

func TestTheClassesOfPortingAreThoseThatRunInTests(t *testing.T) {
	sources := read(t, "../reentrant/example_test.go") + read(t, "../recipes_test/porting/legacy_test.go")
	blocks := goBlock.FindAllStringSubmatch(read(t, "porting/classes.md")+read(t, "porting/services.md"), -1)
	require.Len(t, blocks, 6)
	for _, b := range blocks {
		for _, part := range strings.Split(b[1], "\n\n") { // the tests stand between the parts
			part = strings.TrimSpace(regexp.MustCompile(`(?m)\s+// .*$`).ReplaceAllString("\n"+part, ""))
			assert.Contains(t, regexp.MustCompile(`(?m)\s+// .*$`).ReplaceAllString(sources, ""), part)
		}
	}
}
