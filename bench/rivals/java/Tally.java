import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Locale;

/** What a slice has measured. */
final class Tally {
    private static final int SENT = 2000; // so many latencies are sent

    private long[] latencies = new long[1024];
    private int taken;
    private double queueing; // seconds
    private long queueingRequests = Counters.UNKNOWN;
    private long requests = Counters.UNKNOWN;
    private double elapsed; // seconds
    private long processor; // ns of this process

    /** Adds an operation. */
    synchronized void add(long nanos) {
        if (taken == latencies.length) {
            latencies = Arrays.copyOf(latencies, 2 * taken);
        }
        latencies[taken++] = nanos;
    }

    synchronized void addAll(Tally other) {
        for (int i = 0; i < other.taken; i++) {
            add(other.latencies[i]);
        }
    }

    synchronized int operations() {
        return taken;
    }

    /** Begins to count the processor time of this process. */
    void begin() {
        processor = -processorTime();
    }

    private static long processorTime() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
    }

    void measured(long nanos, long exchanged) {
        processor += processorTime();
        elapsed = nanos / 1e9;
        requests = exchanged;
    }

    void queued(long nanos, long exchanged) {
        queueing = nanos / 1e9;
        queueingRequests = exchanged;
    }

    synchronized String json() {
        StringBuilder all = new StringBuilder();
        long[] sorted = Arrays.copyOf(latencies, taken);
        Arrays.sort(sorted); // what is sent has the percentiles of the whole
        int n = Math.min(taken, SENT);
        for (int i = 0; i < n; i++) {
            long each = sorted[(int) ((2L * i + 1) * taken / (2L * n))];
            all.append(i == 0 ? "" : ",").append(String.format(Locale.ROOT, "%.1f", each / 1e3));
        }
        return String.format(Locale.ROOT,
                "{\"ops\":%d,\"elapsed_s\":%.6f,\"requests\":%d,\"cpu_s\":%.6f,\"queueing_s\":%.6f,\"queueing_requests\":%d,\"latencies_us\":[%s]}",
                taken, elapsed, requests, processor / 1e9, queueing, queueingRequests, all);
    }

    static String failure(Throwable e) {
        String text = e.toString().replaceAll("[^\\x20-\\x7e]", " ").replace("\\", "\\\\").replace("\"", "\\\"");
        return "{\"error\":\"" + text + "\"}";
    }
}
