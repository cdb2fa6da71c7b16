import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.Revoker;

/** InterProcessMutex and its relatives. */
final class Locks {
    private static final int CLIENTS = 3;
    private static final int ROUNDS = 8;

    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("mutex", Locks::mutex);
        scenarios.put("read-write", Locks::readWrite);
        scenarios.put("downgrade", Locks::downgrade);
        scenarios.put("semaphore-mutex", Locks::semaphoreMutex);
        scenarios.put("multi-lock", Locks::multiLock);
        scenarios.put("revoke", Locks::revoke);
    }

    /** Two threads of each client contend; each takes the lock twice. */
    static String mutex(World w) throws Exception {
        String path = w.path + "/lock";
        InterProcessMutex[] locks = new InterProcessMutex[CLIENTS];
        for (int i = 0; i < CLIENTS; i++) {
            locks[i] = new InterProcessMutex(w.client(), path);
        }
        Section section = new Section();
        w.together(2 * CLIENTS, i -> {
            InterProcessMutex lock = locks[i % CLIENTS];
            for (int round = 0; round < ROUNDS; round++) {
                lock.acquire();
                lock.acquire();
                section.visit();
                lock.release();
                lock.release();
            }
        });
        locks[0].acquire();
        boolean busy = !locks[1].acquire(50, TimeUnit.MILLISECONDS);
        int participants = locks[1].getParticipantNodes().size();
        locks[0].release();
        boolean free = locks[1].acquire(0, TimeUnit.MILLISECONDS);
        locks[1].release();
        return section + ", busy " + busy + ", participants " + participants + ", free " + free;
    }

    /** Writers are alone, two readers are inside together. */
    static String readWrite(World w) throws Exception {
        String path = w.path + "/lock";
        CuratorFramework one = w.client();
        CuratorFramework two = w.client();
        Section section = new Section();
        w.together(4, i -> {
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(i % 2 == 0 ? one : two, path);
            for (int round = 0; round < ROUNDS; round++) {
                InterProcessMutex mine = i < 2 ? lock.writeLock() : lock.readLock();
                mine.acquire();
                if (i < 2) {
                    section.visit();
                } else if (section.most() > 1) {
                    throw new IllegalStateException("two writers");
                }
                mine.release();
            }
        });
        CyclicBarrier both = new CyclicBarrier(3);
        Future<?> readers = w.background(() -> {
            w.together(2, i -> {
                InterProcessReadWriteLock lock = new InterProcessReadWriteLock(i == 0 ? one : two, path);
                lock.readLock().acquire();
                both.await(World.PATIENCE, TimeUnit.SECONDS);
                both.await(World.PATIENCE, TimeUnit.SECONDS);
                lock.readLock().release();
            });
            return null;
        });
        both.await(World.PATIENCE, TimeUnit.SECONDS);
        InterProcessMutex writer = new InterProcessReadWriteLock(two, path).writeLock();
        boolean excluded = !writer.acquire(50, TimeUnit.MILLISECONDS);
        both.await(World.PATIENCE, TimeUnit.SECONDS);
        World.get(readers);
        boolean alone = writer.acquire(World.PATIENCE, TimeUnit.SECONDS);
        writer.release();
        return section + ", excluded " + excluded + ", alone " + alone;
    }

    /** A writer takes the read lock too and keeps it: other readers get in, writers do not. */
    static String downgrade(World w) throws Exception {
        InterProcessReadWriteLock mine = new InterProcessReadWriteLock(w.client(), w.path + "/lock");
        InterProcessReadWriteLock others = new InterProcessReadWriteLock(w.client(), w.path + "/lock");
        mine.writeLock().acquire();
        mine.readLock().acquire();
        boolean before = others.readLock().acquire(50, TimeUnit.MILLISECONDS);
        mine.writeLock().release();
        boolean reads = others.readLock().acquire(World.PATIENCE, TimeUnit.SECONDS);
        boolean writes = others.writeLock().acquire(50, TimeUnit.MILLISECONDS);
        mine.readLock().release();
        others.readLock().release();
        return "read before " + before + ", read after " + reads + ", write " + writes;
    }

    /** Not reentrant, and any thread may release it. */
    static String semaphoreMutex(World w) throws Exception {
        InterProcessSemaphoreMutex[] locks = new InterProcessSemaphoreMutex[CLIENTS];
        for (int i = 0; i < CLIENTS; i++) {
            locks[i] = new InterProcessSemaphoreMutex(w.client(), w.path + "/lock");
        }
        Section section = new Section();
        w.together(CLIENTS, i -> {
            for (int round = 0; round < ROUNDS; round++) {
                locks[i].acquire();
                section.visit();
                locks[i].release();
            }
        });
        locks[0].acquire();
        boolean again = locks[0].acquire(50, TimeUnit.MILLISECONDS);
        w.together(1, i -> locks[0].release());
        boolean next = locks[1].acquire(World.PATIENCE, TimeUnit.SECONDS);
        locks[1].release();
        return section + ", again " + again + ", next " + next;
    }

    /** All or nothing. */
    static String multiLock(World w) throws Exception {
        CuratorFramework one = w.client();
        CuratorFramework two = w.client();
        List<String> paths = List.of(w.path + "/a", w.path + "/b");
        InterProcessMultiLock both = new InterProcessMultiLock(one, paths);
        InterProcessMutex second = new InterProcessMutex(two, paths.get(1));
        second.acquire();
        boolean early = both.acquire(50, TimeUnit.MILLISECONDS);
        InterProcessMutex first = new InterProcessMutex(two, paths.get(0));
        boolean released = first.acquire(World.PATIENCE, TimeUnit.SECONDS);
        first.release();
        second.release();
        boolean all = both.acquire(World.PATIENCE, TimeUnit.SECONDS);
        boolean busy = !first.acquire(50, TimeUnit.MILLISECONDS);
        both.release();
        return "early " + early + ", released " + released + ", all " + all + ", busy " + busy;
    }

    /** The holder is asked for the lock, and gives it up. */
    static String revoke(World w) throws Exception {
        CuratorFramework other = w.client();
        InterProcessMutex mine = new InterProcessMutex(w.client(), w.path + "/lock");
        BlockingQueue<String> asked = new LinkedBlockingQueue<>();
        mine.makeRevocable(lock -> asked.add("asked"));
        mine.acquire();
        String node = mine.getParticipantNodes().iterator().next();
        Revoker.attemptRevoke(other, node);
        String heard = World.take(asked);
        mine.release();
        InterProcessMutex next = new InterProcessMutex(other, w.path + "/lock");
        boolean taken = next.acquire(World.PATIENCE, TimeUnit.SECONDS);
        next.release();
        return heard + ", taken " + taken;
    }
}
