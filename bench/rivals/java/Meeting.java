import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/**
 * Parties that enter and leave a double barrier: nobody leaves before all have entered, and the next round begins when all
 * have left.
 */
final class Meeting {
    private static final int PATIENCE = 30; // seconds

    private final Slice slice;
    private final Tally tally;
    private final AtomicReference<Throwable> failed = new AtomicReference<>();
    private final AtomicInteger entering = new AtomicInteger();
    private final AtomicLong began = new AtomicLong();
    private final long start = System.nanoTime();
    private volatile boolean over;
    private final CyclicBarrier gate;
    private final CyclicBarrier inside;

    private Meeting(Slice slice, Tally tally) {
        this.slice = slice;
        this.tally = tally;
        gate = new CyclicBarrier(slice.clients, this::next);
        inside = new CyclicBarrier(slice.clients);
    }

    static void run(Slice slice, Tally tally) throws Exception {
        List<CuratorFramework> sessions = slice.open(slice.clients);
        tally.begin();
        long before = Counters.received(slice.servers);
        Meeting meeting = new Meeting(slice, tally);
        List<Thread> threads = new ArrayList<>();
        for (CuratorFramework session : sessions) {
            threads.add(Work.begin(() -> meeting.party(session)));
        }
        for (Thread thread : threads) {
            while (thread.isAlive() && meeting.failed.get() == null) {
                thread.join(50);
            }
        }
        Work.join(threads, meeting.failed);
        tally.measured(System.nanoTime() - meeting.start, Counters.between(before, Counters.received(slice.servers)));
    }

    /** Runs when all are at the gate: a round has ended, but the first time. */
    private void next() {
        long now = System.nanoTime();
        if (began.get() != 0) {
            tally.add(now - began.get());
            over = now - start >= slice.nanos;
        }
        entering.set(0);
        began.set(System.nanoTime());
    }

    private void party(CuratorFramework session) {
        try {
            for (gate.await(); !over; gate.await()) {
                // An object serves for one round.
                DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(session, slice.path + "/double", slice.clients);
                entering.incrementAndGet();
                if (!barrier.enter(PATIENCE, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("nobody opens the barrier");
                }
                if (entering.get() < slice.clients) {
                    throw new IllegalStateException("open before all have entered");
                }
                inside.await();
                if (!barrier.leave(PATIENCE, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("not all leave the barrier");
                }
            }
        } catch (Throwable e) {
            failed.compareAndSet(null, e);
        }
    }
}
