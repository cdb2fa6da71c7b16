import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;

/** Waiters that queue behind a holder, one by one or all at once. Then it releases, and each releases as soon as it is granted. */
final class Queue {
    private static final long PATIENCE = 60_000_000_000L; // ns

    private final Slice slice;
    private final Tally tally;
    private final CuratorFramework counter;
    private final AtomicReference<Throwable> failed = new AtomicReference<>();
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicLong last = new AtomicLong();
    private final CountDownLatch gate = new CountDownLatch(1);
    private final List<Thread> threads = new ArrayList<>();
    private final long began = System.nanoTime();
    private long counts; // questions of the counter, which the servers count, too

    private Queue(Slice slice, Tally tally) throws Exception {
        this.slice = slice;
        this.tally = tally;
        counter = slice.open(1).get(0);
    }

    static void run(Slice slice, List<Client> clients, Tally tally) throws Exception {
        Queue queue = new Queue(slice, tally);
        Client holder = clients.get(0);
        holder.acquire();
        tally.begin();
        long before = Counters.received(slice.servers);
        Quiet settled = slice.scenario.equals("crowd") ? queue.together(clients) : queue.oneByOne(clients);
        long all = Counters.between(before, settled.received);
        long counted = queue.counts;
        tally.queued(settled.nanos, all == Counters.UNKNOWN ? all : all - counted);
        long start = System.nanoTime();
        queue.last.set(start);
        holder.release();
        Work.join(queue.threads, queue.failed);
        long drained = Counters.between(settled.received, Counters.received(slice.servers));
        tally.measured(System.nanoTime() - start, drained == Counters.UNKNOWN ? drained : drained + all - counted);
    }

    private Quiet oneByOne(List<Client> clients) throws Exception {
        gate.countDown();
        long start = System.nanoTime();
        for (Client waiter : clients.subList(1, clients.size())) {
            begin(waiter);
            while (missing() > 0) { // until it is there
            }
        }
        long took = System.nanoTime() - start;
        return new Quiet(took, settle(slice).received);
    }

    /** What a waiter asks after it is in the queue is part of entering it. The queue is counted only when all are quiet. */
    private Quiet together(List<Client> clients) throws Exception {
        for (Client waiter : clients.subList(1, clients.size())) {
            begin(waiter);
        }
        long start = System.nanoTime();
        gate.countDown();
        Quiet quiet;
        do {
            quiet = settle(slice);
        } while (missing() > 0);
        return new Quiet(quiet.nanos - start, quiet.received + 1); // the last count came after it
    }

    private void begin(Client waiter) {
        threads.add(Work.begin(() -> {
            try {
                gate.await();
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
    }

    /** Returns how many of those that have begun are not in the queue behind the holder. */
    private int missing() throws Exception {
        counts++;
        if (failed.get() != null || System.nanoTime() - began > PATIENCE) {
            throw new TimeoutException("not all queue: " + failed.get());
        }
        return threads.size() + 1 - counter.checkExists().forPath(slice.path).getNumChildren();
    }

    /** When the last waiter had nothing more to send, and what the servers had received until then. */
    record Quiet(long nanos, long received) {}

    /** Returns when nothing was received for 50 ms. */
    static Quiet settle(Slice slice) throws InterruptedException {
        long before = Counters.received(slice.servers);
        long changed = System.nanoTime();
        for (long now = changed; now - changed < 50_000_000; now = System.nanoTime()) {
            TimeUnit.MILLISECONDS.sleep(10);
            long received = Counters.received(slice.servers);
            if (received != before) {
                before = received;
                changed = System.nanoTime();
            }
        }
        return new Quiet(changed, before);
    }
}
