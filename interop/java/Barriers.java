import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** DistributedBarrier and DistributedDoubleBarrier. */
final class Barriers {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("barrier", Barriers::barrier);
        scenarios.put("double-barrier", Barriers::doubleBarrier);
    }

    static String barrier(World w) throws Exception {
        CuratorFramework client = w.client();
        String path = w.path + "/barrier";
        boolean open = new DistributedBarrier(client, path).waitOnBarrier(0, TimeUnit.SECONDS);
        DistributedBarrier mine = new DistributedBarrier(client, path);
        mine.setBarrier();
        boolean early = new DistributedBarrier(w.client(), path).waitOnBarrier(50, TimeUnit.MILLISECONDS);
        AtomicInteger through = new AtomicInteger();
        Future<?> waiting = w.background(() -> {
            w.together(3, i -> {
                new DistributedBarrier(w.client(), path).waitOnBarrier();
                through.incrementAndGet();
            });
            return null;
        });
        mine.removeBarrier();
        World.get(waiting);
        return "open " + open + ", early " + early + ", through " + through;
    }

    /**
     * Nobody is inside before all are. Who arrives while the last one does may miss it and wait for ever, and who
     * leaves may be out early: so the last one comes when the others wait, and leaving is only done.
     */
    static String doubleBarrier(World w) throws Exception {
        AtomicInteger entering = new AtomicInteger();
        AtomicInteger early = new AtomicInteger();
        AtomicInteger left = new AtomicInteger();
        int parties = 4;
        CountDownLatch waiting = new CountDownLatch(parties - 1);
        // Not containers: leave() fails if an empty one is removed while it looks.
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/barrier");
        client.create().forPath(w.path + "/lonely");
        w.together(parties, i -> {
            DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(w.client(), w.path + "/barrier", parties) {
                @Override
                protected List<String> getChildrenForEntering() throws Exception {
                    // It holds the lock that it gives up only by waiting.
                    waiting.countDown();
                    return super.getChildrenForEntering();
                }
            };
            if (i == parties - 1 && !waiting.await(World.PATIENCE, TimeUnit.SECONDS)) {
                throw new IllegalStateException("the others do not wait");
            }
            entering.incrementAndGet();
            barrier.enter();
            early.addAndGet(entering.get() == parties ? 0 : 1);
            barrier.leave();
            left.incrementAndGet();
        });
        DistributedDoubleBarrier lonely = new DistributedDoubleBarrier(client, w.path + "/lonely", 2);
        boolean alone = lonely.enter(50, TimeUnit.MILLISECONDS);
        lonely.leave();
        return "early " + early + ", left " + left + ", alone " + alone;
    }
}
