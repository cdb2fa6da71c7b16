import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.VersionedValue;

/** The scenarios by their names, and the recipe that each uses. */
final class Scenarios {
    /** So much of the section does somebody fill who must be alone. */
    private static final int ALONE = 1 << 20;

    private static final int DEEP_SESSIONS = 10;

    private Scenarios() {}

    static void run(Slice slice, Tally tally) throws Exception {
        switch (slice.scenario) {
            case "uncontended", "async", "contended", "relock" -> Work.run(slice, mutexes(slice, slice.clients, slice.clients), ALONE, tally);
            // An object for each thread: threads that share one use the server fourteen times as much.
            case "local" -> Work.run(slice, mutexes(slice, slice.clients, 1), ALONE, tally);
            case "deep", "crowd" -> {
                int sessions = Math.min(slice.clients, DEEP_SESSIONS);
                Queue.run(slice, mutexes(slice, slice.clients + 1, sessions), tally);
            }
            case "many" -> Work.run(slice, rotas(slice), Integer.MAX_VALUE, tally);
            case "queue" -> Flow.run(slice, tally);
            case "counter" -> count(slice, tally);
            case "rwmutex", "readers" -> Work.run(slice, readersAndWriter(slice), ALONE, tally);
            case "shared-readers" -> Work.run(slice, readers(slice), ALONE, tally);
            case "semaphore" -> Work.run(slice, semaphores(slice), slice.permits, tally);
            case "election" -> Work.run(slice, candidates(slice), ALONE, tally);
            case "double-barrier" -> Meeting.run(slice, tally);
            case "gate" -> Opening.run(slice, tally);
            default -> throw new IllegalArgumentException("no scenario " + slice.scenario);
        }
    }

    private static List<Client> mutexes(Slice slice, int n, int sessions) throws Exception {
        List<Client> clients = new ArrayList<>();
        List<CuratorFramework> open = slice.open(sessions);
        for (int i = 0; i < n; i++) {
            clients.add(new Locker(new InterProcessMutex(open.get(i % sessions), slice.path), ALONE));
        }
        return clients;
    }

    /** As many threads as a server of applications has share the locks out, each with a path of its own. */
    private static final int THREADS = 256;

    /** Each lock has been held once before. */
    private static List<Client> rotas(Slice slice) throws Exception {
        CuratorFramework session = slice.open(1).get(0);
        List<Client> rotas = new ArrayList<>();
        for (int i = 0; i < Math.min(slice.clients, THREADS); i++) {
            List<Client> locks = new ArrayList<>();
            for (int k = i; k < slice.clients; k += THREADS) {
                locks.add(new Locker(new InterProcessMutex(session, slice.path + "/" + k), 1));
            }
            rotas.add(new Rota(locks));
        }
        AtomicReference<Throwable> failed = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (Client rota : rotas) {
            threads.add(Work.begin(() -> {
                try {
                    for (int k = 0; k < slice.clients; k += THREADS) {
                        rota.acquire();
                        rota.release();
                    }
                } catch (Throwable e) {
                    failed.compareAndSet(null, e);
                }
            }));
        }
        Work.join(threads, failed);
        return rotas;
    }

    /** Locks that one thread holds in turn. */
    private static final class Rota implements Client {
        private final List<Client> locks;
        private int next = -1;

        Rota(List<Client> locks) {
            this.locks = locks;
        }

        @Override
        public int weight() {
            return 1;
        }

        @Override
        public void acquire() throws Exception {
            next = (next + 1) % locks.size();
            locks.get(next).acquire();
        }

        @Override
        public void release() throws Exception {
            locks.get(next).release();
        }
    }

    /** Sessions add to one number, which must be exact at the end. */
    private static void count(Slice slice, Tally tally) throws Exception {
        String path = slice.path + "/number";
        List<Client> clients = new ArrayList<>();
        List<CuratorFramework> sessions = slice.open(slice.clients);
        for (CuratorFramework session : sessions) {
            SharedCount count = new SharedCount(session, path, 0);
            count.start();
            clients.add(new Adder(count));
        }
        Work.run(slice, clients, Integer.MAX_VALUE, tally);
        int sum = ByteBuffer.wrap(sessions.get(0).getData().forPath(path)).getInt();
        if (sum != tally.operations()) {
            throw new IllegalStateException("the number is " + sum + " after " + tally.operations() + " additions of one");
        }
    }

    private static final class Adder implements Client {
        private final SharedCount count;

        Adder(SharedCount count) {
            this.count = count;
        }

        @Override
        public int weight() {
            return 0;
        }

        @Override
        public void acquire() throws Exception {
            VersionedValue<Integer> now;
            do {
                now = count.getVersionedValue();
            } while (!count.trySetCount(now, now.getValue() + 1));
        }

        @Override
        public void release() {}
    }

    /** The first writes, all others read. */
    private static List<Client> readersAndWriter(Slice slice) throws Exception {
        List<Client> clients = new ArrayList<>();
        for (CuratorFramework session : slice.open(slice.clients)) {
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(session, slice.path);
            clients.add(clients.isEmpty() ? new Locker(lock.writeLock(), ALONE) : new Locker(lock.readLock(), 1));
        }
        return clients;
    }

    private static List<Client> readers(Slice slice) throws Exception {
        List<Client> clients = new ArrayList<>();
        CuratorFramework session = slice.open(1).get(0);
        for (int i = 0; i < slice.clients; i++) {
            clients.add(new Locker(new InterProcessReadWriteLock(session, slice.path).readLock(), 1));
        }
        return clients;
    }

    private static List<Client> semaphores(Slice slice) throws Exception {
        List<Client> clients = new ArrayList<>();
        for (CuratorFramework session : slice.open(slice.clients)) {
            clients.add(new Permit(new InterProcessSemaphoreV2(session, slice.path, slice.permits)));
        }
        return clients;
    }

    private static List<Client> candidates(Slice slice) throws Exception {
        List<Client> clients = new ArrayList<>();
        for (CuratorFramework session : slice.open(slice.clients)) {
            clients.add(new Candidate(session, slice.path));
        }
        return clients;
    }

    private static final class Locker implements Client {
        private final InterProcessLock lock;
        private final int weight;

        Locker(InterProcessLock lock, int weight) {
            this.lock = lock;
            this.weight = weight;
        }

        @Override
        public int weight() {
            return weight;
        }

        @Override
        public void acquire() throws Exception {
            lock.acquire();
        }

        @Override
        public void release() throws Exception {
            lock.release();
        }
    }

    private static final class Permit implements Client {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease lease;

        Permit(InterProcessSemaphoreV2 semaphore) {
            this.semaphore = semaphore;
        }

        @Override
        public int weight() {
            return 1;
        }

        @Override
        public void acquire() throws Exception {
            lease = semaphore.acquire();
        }

        @Override
        public void release() {
            semaphore.returnLease(lease);
        }
    }

    /** A latch can be used once, so each candidacy has a new one. */
    private static final class Candidate implements Client {
        private final CuratorFramework session;
        private final String path;
        private LeaderLatch latch;

        Candidate(CuratorFramework session, String path) {
            this.session = session;
            this.path = path;
        }

        @Override
        public int weight() {
            return ALONE;
        }

        @Override
        public void acquire() throws Exception {
            latch = new LeaderLatch(session, path);
            latch.start();
            latch.await();
        }

        @Override
        public void release() throws Exception {
            latch.close();
        }
    }
}
