import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;

/** Half of the sessions put into one queue, the others consume with a lock on each element, so that none is lost with a consumer. */
final class Flow implements QueueSerializer<Long>, QueueConsumer<Long> {
    private static final int BACKLOG = 64; // as bench.Backlog
    private static final long PATIENCE = 30_000_000_000L; // how long the last elements may take, in ns

    private final Tally tally;
    private final Map<Long, Long> sent = new ConcurrentHashMap<>(); // when, by number
    private final Semaphore room = new Semaphore(BACKLOG);
    private final AtomicLong numbers = new AtomicLong();
    private final AtomicReference<Throwable> failed = new AtomicReference<>();
    private volatile boolean over;

    private Flow(Tally tally) {
        this.tally = tally;
    }

    static void run(Slice slice, Tally tally) throws Exception {
        Flow flow = new Flow(tally);
        List<DistributedQueue<Long>> queues = new ArrayList<>();
        for (CuratorFramework session : slice.open(slice.clients)) {
            QueueConsumer<Long> consumer = queues.size() < slice.clients / 2 ? null : flow;
            queues.add(QueueBuilder.builder(session, consumer, flow, slice.path + "/queue").lockPath(slice.path + "/locks")
                    .putInBackground(false).buildQueue());
        }
        tally.begin();
        long before = Counters.received(slice.servers);
        long start = System.nanoTime();
        for (DistributedQueue<Long> queue : queues) {
            queue.start();
        }
        List<Thread> producers = new ArrayList<>();
        for (DistributedQueue<Long> queue : queues.subList(0, slice.clients / 2)) {
            producers.add(Work.begin(() -> flow.produce(queue)));
        }
        for (long end = start + slice.nanos; flow.failed.get() == null && System.nanoTime() < end; ) {
            TimeUnit.NANOSECONDS.sleep(Math.min(Math.max(end - System.nanoTime(), 1), 50_000_000));
        }
        flow.over = true;
        Work.join(producers, flow.failed);
        for (long end = System.nanoTime() + PATIENCE; flow.failed.get() == null && tally.operations() < flow.numbers.get(); ) {
            if (System.nanoTime() > end) {
                throw new TimeoutException(flow.sent.size() + " elements are lost");
            }
            TimeUnit.MILLISECONDS.sleep(1);
        }
        if (flow.failed.get() != null) {
            throw new Exception(flow.failed.get());
        }
        long took = System.nanoTime() - start;
        for (DistributedQueue<Long> queue : queues) {
            queue.close(); // waits for the acknowledgement of the last element
        }
        tally.measured(took, Counters.between(before, Counters.received(slice.servers)));
    }

    private void produce(DistributedQueue<Long> queue) {
        try {
            do {
                room.acquire();
                long number = numbers.incrementAndGet();
                sent.put(number, System.nanoTime());
                queue.put(number);
            } while (!over);
        } catch (Throwable e) {
            failed.compareAndSet(null, e);
        }
    }

    @Override
    public void consumeMessage(Long number) {
        Long when = sent.remove(number);
        if (when == null) {
            failed.compareAndSet(null, new IllegalStateException("element " + number + " is received twice, or was never put"));
            return;
        }
        tally.add(System.nanoTime() - when);
        room.release();
    }

    @Override
    public void stateChanged(CuratorFramework session, ConnectionState state) {}

    @Override
    public byte[] serialize(Long number) {
        return ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }

    @Override
    public Long deserialize(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getLong();
    }
}
