import java.util.Map;
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

    /** Nobody is inside before all are, nobody is out before all leave. */
    static String doubleBarrier(World w) throws Exception {
        AtomicInteger entering = new AtomicInteger();
        AtomicInteger leaving = new AtomicInteger();
        AtomicInteger wrong = new AtomicInteger();
        int parties = 4;
        // Not containers: leave() fails if an empty one is removed while it looks.
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/barrier");
        client.create().forPath(w.path + "/lonely");
        w.together(parties, i -> {
            DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(w.client(), w.path + "/barrier", parties);
            entering.incrementAndGet();
            barrier.enter();
            wrong.addAndGet(entering.get() == parties ? 0 : 1);
            leaving.incrementAndGet();
            barrier.leave();
            wrong.addAndGet(leaving.get() == parties ? 0 : 1);
        });
        DistributedDoubleBarrier lonely = new DistributedDoubleBarrier(client, w.path + "/lonely", 2);
        boolean alone = lonely.enter(50, TimeUnit.MILLISECONDS);
        lonely.leave();
        return "wrong " + wrong + ", alone " + alone;
    }
}
