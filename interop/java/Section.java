import java.util.concurrent.atomic.AtomicInteger;

/** A place that counts who is inside, and whose own count is right only if one is inside at a time. */
final class Section {
    private final AtomicInteger inside = new AtomicInteger();
    private final AtomicInteger most = new AtomicInteger();
    private volatile int visits;

    void visit() throws InterruptedException {
        most.accumulateAndGet(inside.incrementAndGet(), Math::max);
        int seen = visits;
        Thread.sleep(1);
        visits = seen + 1;
        inside.decrementAndGet();
    }

    /** How many were inside at once, at the most. */
    int most() {
        return most.get();
    }

    @Override
    public String toString() {
        return visits + " visits by " + most;
    }
}
