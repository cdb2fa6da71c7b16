import java.io.IOException;
import java.net.Socket;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** Locks, permits and elections: "enter" waits, "try" waits a moment and returns whether it is in, "leave". */
final class Locks {
    static void addTo(Map<String, Half.Kind> kinds) {
        kinds.put("mutex", (client, path, x) -> lock(new InterProcessMutex(client, path)));
        kinds.put("read", (client, path, x) -> lock(new InterProcessReadWriteLock(client, path).readLock()));
        kinds.put("write", (client, path, x) -> lock(new InterProcessReadWriteLock(client, path).writeLock()));
        kinds.put("multi", (client, path, second) ->
                lock(new InterProcessMultiLock(client, List.of(path, second))));
        kinds.put("semaphore-mutex", (client, path, x) -> lock(new InterProcessSemaphoreMutex(client, path)));
        kinds.put("semaphore", Locks::semaphore);
        kinds.put("selector", Locks::selector);
        kinds.put("latch", Locks::latch);
    }

    /** How often the lock is taken, and what is done in it. */
    private static Half.Recipe lock(InterProcessLock lock) {
        return (verb, argument) -> {
            switch (verb) {
                case "enter":
                    if (!lock.acquire(Half.PATIENCE, TimeUnit.SECONDS)) {
                        throw new TimeoutException();
                    }
                    return "";
                case "try":
                    return "" + lock.acquire(Half.limit(argument), TimeUnit.MILLISECONDS);
                case "leave":
                    lock.release();
                    return "";
                case "contend": // ADDRESS,SIDE,ROUNDS
                    String[] words = argument.split(",");
                    for (int i = 0; i < Integer.parseInt(words[2]); i++) {
                        if (!lock.acquire(Half.PATIENCE, TimeUnit.SECONDS)) {
                            throw new TimeoutException();
                        }
                        visit(words[0], words[1]);
                        lock.release();
                    }
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    /** Goes in at the witness, which sees if others are in, and comes out when the witness says so. */
    static void visit(String address, String side) throws IOException {
        int colon = address.lastIndexOf(':');
        try (Socket witness = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)))) {
            witness.getOutputStream().write(side.charAt(0));
            if (witness.getInputStream().read() != 'x') {
                throw new IOException("the witness has closed the connection");
            }
            witness.getOutputStream().write('x');
            witness.getInputStream().read(); // until it has been counted out
        }
    }

    private static Half.Recipe semaphore(CuratorFramework client, String path, String permits) {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, Integer.parseInt(permits));
        Lease[] held = {null};
        return (verb, argument) -> {
            switch (verb) {
                case "enter":
                    held[0] = semaphore.acquire();
                    return "";
                case "try":
                    held[0] = semaphore.acquire(Half.limit(argument), TimeUnit.MILLISECONDS);
                    return "" + (held[0] != null);
                case "leave":
                    semaphore.returnLease(held[0]);
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe selector(CuratorFramework client, String path, String argument) {
        CountDownLatch leading = new CountDownLatch(1);
        CountDownLatch over = new CountDownLatch(1);
        String[] place = {null, null};
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                if (place[0] != null) {
                    visit(place[0], place[1]);
                    return;
                }
                leading.countDown();
                over.await();
            }
        });
        selector.setId("java");
        return (verb, words) -> {
            switch (verb) {
                case "contend": // ADDRESS,SIDE: for as long as this program lives
                    place[0] = words.split(",")[0];
                    place[1] = words.split(",")[1];
                    selector.autoRequeue();
                    selector.start();
                    return "";
                case "enter":
                    selector.start();
                    leading.await();
                    return "";
                case "leader":
                    return selector.getLeader().getId();
                case "candidates":
                    return "" + selector.getParticipants().size();
                case "leave":
                    over.countDown();
                    selector.close();
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe latch(CuratorFramework client, String path, String argument) {
        LeaderLatch latch = new LeaderLatch(client, path, "java");
        return (verb, words) -> {
            switch (verb) {
                case "enter":
                    latch.start();
                    latch.await();
                    return "";
                case "try":
                    latch.start();
                    return "" + latch.await(Half.limit(words), TimeUnit.MILLISECONDS);
                case "leave":
                    latch.close();
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }
}
