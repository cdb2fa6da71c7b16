import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;

/**
 * Parties that all wait at a closed gate, until another session opens it. Only the opening is timed: who begins
 * to wait after it is let through at once, so it comes when nothing has been sent for some time.
 */
final class Opening {
    private static final int PATIENCE = 30; // seconds

    private Opening() {}

    static void run(Slice slice, Tally tally) throws Exception {
        List<DistributedBarrier> gates = new ArrayList<>();
        for (CuratorFramework session : slice.open(slice.clients + 1)) {
            gates.add(new DistributedBarrier(session, slice.path + "/gate"));
        }
        DistributedBarrier keeper = gates.remove(0);
        tally.begin();
        long before = Counters.received(slice.servers);
        long timed = 0;
        for (long end = System.nanoTime() + slice.nanos; timed == 0 || System.nanoTime() < end; ) {
            keeper.setBarrier();
            AtomicReference<Throwable> failed = new AtomicReference<>();
            CountDownLatch heard = new CountDownLatch(gates.size());
            List<Thread> threads = begin(gates, heard, failed);
            Queue.settle(slice);
            if (heard.getCount() < gates.size()) {
                throw new IllegalStateException("a closed gate let somebody through");
            }
            long start = System.nanoTime();
            keeper.removeBarrier();
            Work.join(threads, failed);
            long took = System.nanoTime() - start;
            tally.add(took);
            timed += took;
        }
        tally.measured(timed, Counters.between(before, Counters.received(slice.servers)));
    }

    /** Returns when all are about to wait. */
    private static List<Thread> begin(List<DistributedBarrier> gates, CountDownLatch heard, AtomicReference<Throwable> failed)
            throws InterruptedException {
        CountDownLatch coming = new CountDownLatch(gates.size());
        List<Thread> threads = new ArrayList<>();
        for (DistributedBarrier gate : gates) {
            threads.add(Work.begin(() -> {
                coming.countDown();
                try {
                    if (!gate.waitOnBarrier(PATIENCE, TimeUnit.SECONDS)) {
                        throw new IllegalStateException("nobody opens the gate");
                    }
                } catch (Throwable e) {
                    failed.compareAndSet(null, e);
                }
                heard.countDown();
            }));
        }
        coming.await();
        return threads;
    }
}
