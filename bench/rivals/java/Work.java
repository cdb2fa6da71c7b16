import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Clients that acquire and release until the time is over. Each finishes the operation that it is at. */
final class Work {
    private static final long GRACE = 30_000_000_000L; // how long the last operations may take, in ns

    private final int limit;
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicReference<Throwable> failed = new AtomicReference<>();
    private final Tally total;
    private volatile boolean over;

    private Work(int limit, Tally total) {
        this.limit = limit;
        this.total = total;
    }

    static void run(Slice slice, List<Client> clients, int limit, Tally tally) throws Exception {
        Work work = new Work(limit, tally);
        tally.begin();
        long before = Counters.received(slice.servers);
        long start = System.nanoTime();
        List<Thread> threads = new ArrayList<>();
        for (Client client : clients) {
            threads.add(begin(() -> work.loop(client)));
        }
        for (long end = start + slice.nanos; work.failed.get() == null && System.nanoTime() < end; ) {
            TimeUnit.NANOSECONDS.sleep(Math.min(end - System.nanoTime(), 50_000_000));
        }
        work.over = true;
        join(threads, work.failed);
        tally.measured(System.nanoTime() - start, Counters.between(before, Counters.received(slice.servers)));
    }

    static Thread begin(Runnable task) {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Waits for all threads. If one has failed, or some do not end, it interrupts those that wait. */
    static void join(List<Thread> threads, AtomicReference<Throwable> failed) throws Exception {
        int stuck = 0;
        long end = System.nanoTime() + GRACE;
        for (Thread thread : threads) {
            while (thread.isAlive() && failed.get() == null && System.nanoTime() < end) {
                thread.join(50);
            }
            if (thread.isAlive()) {
                stuck++;
                thread.interrupt();
            }
        }
        if (failed.get() != null) {
            throw new Exception(failed.get());
        }
        if (stuck > 0) {
            throw new TimeoutException(stuck + " of " + threads.size() + " threads hang");
        }
    }

    private void loop(Client client) {
        Tally own = new Tally();
        try {
            do {
                long start = System.nanoTime();
                client.acquire();
                own.add(System.nanoTime() - start);
                check(inside.addAndGet(client.weight()), limit);
                inside.addAndGet(-client.weight());
                client.release();
            } while (!over);
        } catch (Throwable e) {
            failed.compareAndSet(null, e);
        }
        total.addAll(own);
    }

    static void check(int inside, int limit) {
        if (inside > limit) {
            throw new IllegalStateException("held by too many at a time");
        }
    }
}
