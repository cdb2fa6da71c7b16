import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Takes a Curator lock again and again.
 *
 * Arguments: SERVERS PATH KIND ROUNDS FILE. KIND lock or write adds one to the number in FILE, in
 * two steps, "n n+1" in between; KIND read checks that both numbers are the same; KIND downgrade
 * writes, then reads under the read lock that it took before it gave the write lock up.
 */
public class Contender {
    public static void main(String[] args) throws Exception {
        String path = args[1];
        String kind = args[2];
        int rounds = Integer.parseInt(args[3]);
        Path file = Path.of(args[4]);
        try (CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 30000, 10000, new ExponentialBackoffRetry(100, 10))) {
            client.start();
            InterProcessMutex lock = new InterProcessMutex(client, path);
            InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
            System.out.println("ready");
            for (int i = 0; i < rounds; i++) {
                InterProcessMutex mine =
                        kind.equals("lock") ? lock : kind.equals("read") ? both.readLock() : both.writeLock();
                if (!mine.acquire(120, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("not acquired within 120 s");
                }
                if (kind.equals("read")) {
                    check(file);
                } else {
                    add(file);
                }
                if (kind.equals("downgrade")) {
                    both.readLock().acquire();
                    mine.release();
                    check(file);
                    both.readLock().release();
                } else {
                    mine.release();
                }
            }
        }
        System.out.println("done");
    }

    static int[] read(Path file) throws Exception {
        String[] words = Files.readString(file).trim().split(" ");
        return new int[] {Integer.parseInt(words[0]), Integer.parseInt(words[1])};
    }

    static void check(Path file) throws Exception {
        int[] before = read(file);
        Thread.sleep(2);
        int[] after = read(file);
        if (before[0] != before[1] || before[0] != after[0] || after[0] != after[1]) {
            throw new IllegalStateException("a writer was inside while this one read");
        }
    }

    static void add(Path file) throws Exception {
        int[] n = read(file);
        if (n[0] != n[1]) {
            throw new IllegalStateException("another writer was inside");
        }
        Files.writeString(file, n[0] + " " + (n[0] + 1) + "\n");
        Thread.sleep(1);
        Files.writeString(file, (n[0] + 1) + " " + (n[0] + 1) + "\n");
    }
}
