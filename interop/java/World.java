import java.util.ArrayList;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.ZooKeeper;

/** What one scenario works with: a path of its own, clients, threads, and somebody who breaks connections. */
final class World implements AutoCloseable {
    /** How long anything may take, in seconds. */
    static final int PATIENCE = 60;

    /** A task that may fail. */
    interface Task {
        void run(int number) throws Exception;
    }

    /** A condition that may fail. */
    interface Condition {
        boolean holds() throws Exception;
    }

    final String id;
    final String path;
    private final String servers;
    private final List<AutoCloseable> open = Collections.synchronizedList(new ArrayList<>());
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final Semaphore answers = new Semaphore(0);

    World(String id, String name, String servers) {
        this.id = id;
        this.path = "/curator-" + name;
        this.servers = servers;
    }

    static synchronized void say(String line) {
        System.out.println(line);
    }

    /** Returns a new client, closed when the scenario ends. */
    CuratorFramework client() throws Exception {
        return client(plain());
    }

    CuratorFramework client(CuratorFrameworkFactory.Builder builder) throws Exception {
        CuratorFramework client = closing(builder.build());
        client.start();
        if (!client.blockUntilConnected(PATIENCE, TimeUnit.SECONDS)) {
            throw new TimeoutException("no connection");
        }
        return client;
    }

    CuratorFrameworkFactory.Builder plain() {
        return CuratorFrameworkFactory.builder()
                .connectString(servers)
                .sessionTimeoutMs(30_000)
                .connectionTimeoutMs(10_000)
                .retryPolicy(new RetryForever(100));
    }

    /** Closes something when the scenario ends, before what was opened earlier. */
    <T extends AutoCloseable> T closing(T resource) {
        open.add(resource);
        return resource;
    }

    <T> Future<T> background(Callable<T> task) {
        return threads.submit(task);
    }

    /** Runs a task n times, all at the same time, and waits for all. */
    void together(int n, Task task) throws Exception {
        List<Future<Void>> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int number = i;
            all.add(background(() -> {
                task.run(number);
                return null;
            }));
        }
        for (Future<Void> one : all) {
            one.get(PATIENCE, TimeUnit.SECONDS);
        }
    }

    static <T> T take(BlockingQueue<T> queue) throws Exception {
        T next = queue.poll(PATIENCE, TimeUnit.SECONDS);
        if (next == null) {
            throw new TimeoutException("nothing came");
        }
        return next;
    }

    static <T> T get(Future<T> future) throws Exception {
        return future.get(PATIENCE, TimeUnit.SECONDS);
    }

    static void until(String what, Condition condition) throws Exception {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE);
        while (!condition.holds()) {
            if (System.nanoTime() > end) {
                throw new TimeoutException("never happened: " + what);
            }
            Thread.sleep(5);
        }
    }

    /** Has the client's connection dropped. Its session lives on. */
    void disconnect(CuratorFramework client) throws Exception {
        askAbout(client, "disconnect");
    }

    /** Has the client's session expired. */
    void expire(CuratorFramework client) throws Exception {
        askAbout(client, "expire");
    }

    /** Has the server crash and come back with what it had. */
    void restart() throws Exception {
        ask("restart");
    }

    private void askAbout(CuratorFramework client, String what) throws Exception {
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        ask(what + " " + Long.toUnsignedString(zk.getSessionId(), 16) + " "
                + HexFormat.of().formatHex(zk.getSessionPasswd()));
    }

    private void ask(String request) throws Exception {
        say(id + " " + request);
        if (!answers.tryAcquire(PATIENCE, TimeUnit.SECONDS)) {
            throw new TimeoutException("nobody answered: " + request);
        }
    }

    void answered() {
        answers.release();
    }

    @Override
    public void close() throws Exception {
        for (int i = open.size() - 1; i >= 0; i--) {
            open.get(i).close();
        }
        threads.shutdownNow();
    }
}
