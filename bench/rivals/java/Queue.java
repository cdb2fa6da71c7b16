import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;

/** Waiters that queue one by one behind a holder. Then it releases, and each releases as soon as it is granted. */
final class Queue {
    private static final long PATIENCE = 60_000_000_000L; // ns

    private Queue() {}

    static void run(Slice slice, List<Client> clients, Tally tally) throws Exception {
        AtomicReference<Throwable> failed = new AtomicReference<>();
        AtomicInteger inside = new AtomicInteger();
        AtomicLong last = new AtomicLong();
        CuratorFramework counter = slice.open(1).get(0);
        Client holder = clients.get(0);
        holder.acquire();
        long before = Counters.received(slice.servers);
        long counts = 0;
        long start = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        for (Client waiter : clients.subList(1, clients.size())) {
            threads.add(Work.begin(() -> {
                try {
                    waiter.acquire();
                    long now = System.nanoTime();
                    tally.add(now - last.getAndSet(now));
                    Work.check(inside.incrementAndGet(), 1);
                    inside.decrementAndGet();
                    waiter.release();
                } catch (Throwable e) {
                    failed.compareAndSet(null, e);
                }
            }));
            counts += await(counter, slice.path, threads.size() + 1, failed);
        }
        long queued = System.nanoTime() - start;
        long settled = settle(slice);
        long all = Counters.between(before, settled);
        tally.queued(queued, all == Counters.UNKNOWN ? all : all - counts);
        start = System.nanoTime();
        last.set(start);
        holder.release();
        Work.join(threads, failed);
        long drained = Counters.between(settled, Counters.received(slice.servers));
        tally.measured(System.nanoTime() - start, drained == Counters.UNKNOWN ? drained : drained + all - counts);
    }

    /** Returns when n nodes are there, and how often it has asked. */
    private static long await(CuratorFramework counter, String path, int n, AtomicReference<Throwable> failed) throws Exception {
        long end = System.nanoTime() + PATIENCE;
        for (long asked = 1; ; asked++) {
            if (counter.checkExists().forPath(path).getNumChildren() >= n) {
                return asked;
            }
            if (failed.get() != null || System.nanoTime() > end) {
                throw new TimeoutException("not all queue: " + failed.get());
            }
        }
    }

    /** Returns when the last waiter has nothing more to send, and what the servers have received until then. */
    static long settle(Slice slice) throws InterruptedException {
        long before = Counters.received(slice.servers);
        for (int looks = 0; looks < 20; looks++) {
            TimeUnit.MILLISECONDS.sleep(50);
            long now = Counters.received(slice.servers);
            if (now == before) {
                return now;
            }
            before = now;
        }
        return before;
    }
}
