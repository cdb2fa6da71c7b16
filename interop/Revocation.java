import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.KeeperException;

/**
 * Arguments: SERVERS WHAT PATH. WHAT hold takes the lock PATH, revocable, and gives it up when somebody asks for it. WHAT ask asks
 * the holder whose node is PATH, and says how the servers answered.
 */
public class Revocation {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 30000, 10000, new ExponentialBackoffRetry(100, 10))) {
            client.start();
            if (args[1].equals("ask")) {
                try {
                    Revoker.attemptRevoke(client, args[2]);
                    System.out.println("written");
                } catch (KeeperException e) {
                    System.out.println(e.code());
                }
                return;
            }
            CountDownLatch asked = new CountDownLatch(1);
            InterProcessMutex lock = new InterProcessMutex(client, args[2]);
            lock.makeRevocable(mine -> asked.countDown());
            lock.acquire();
            System.out.println("held");
            asked.await();
            System.out.println("asked");
            lock.release();
        }
    }
}
