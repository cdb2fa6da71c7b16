import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** What one slice asks for, and the sessions that work for it. */
final class Slice implements AutoCloseable {
    private static final int PATIENCE = 30; // seconds that a session may take to begin

    final String scenario;
    final int clients;
    final long nanos;
    final String path;
    final String servers;
    final int permits;
    private final int timeout;
    private final List<CuratorFramework> sessions = Collections.synchronizedList(new ArrayList<>());

    /** The line has, with spaces between them: scenario, clients, seconds, path, servers, session timeout (ms), permits. */
    Slice(String line) {
        String[] words = line.split(" ");
        scenario = words[0];
        clients = Integer.parseInt(words[1]);
        nanos = (long) (Double.parseDouble(words[2]) * 1e9);
        path = words[3];
        servers = words[4];
        timeout = Integer.parseInt(words[5]);
        permits = Integer.parseInt(words[6]);
    }

    /** Opens n sessions at once. */
    List<CuratorFramework> open(int n) throws Exception {
        List<CuratorFramework> opened = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            // The tracker would read the configuration of the servers while the slice is measured.
            CuratorFramework session = CuratorFrameworkFactory.builder().connectString(servers).sessionTimeoutMs(timeout)
                    .connectionTimeoutMs(timeout).retryPolicy(new ExponentialBackoffRetry(100, 3)).ensembleTracker(false).build();
            sessions.add(session);
            opened.add(session);
            session.start();
        }
        for (CuratorFramework session : opened) {
            if (!session.blockUntilConnected(PATIENCE, TimeUnit.SECONDS)) {
                throw new TimeoutException("no session within " + PATIENCE + " s");
            }
        }
        return opened;
    }

    /** Ends all sessions at once. */
    @Override
    public void close() {
        ExecutorService threads = Executors.newCachedThreadPool();
        for (CuratorFramework session : sessions) {
            threads.execute(session::close);
        }
        threads.shutdown();
        try {
            threads.awaitTermination(PATIENCE, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
