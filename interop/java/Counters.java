import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/** SharedCount and DistributedAtomicLong. */
final class Counters {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("shared-count", Counters::sharedCount);
        scenarios.put("atomic-long", Counters::atomicLong);
        scenarios.put("promoted-long", Counters::promotedLong);
        scenarios.put("cached-long", Counters::cachedLong);
    }

    static String sharedCount(World w) throws Exception {
        SharedCount mine = new SharedCount(w.client(), w.path + "/count", 10);
        SharedCount theirs = new SharedCount(w.client(), w.path + "/count", 99);
        BlockingQueue<Integer> heard = new LinkedBlockingQueue<>();
        theirs.addListener(new SharedCountListener() {
            @Override
            public void countHasChanged(SharedCountReader reader, int count) {
                heard.add(count);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        });
        mine.start();
        theirs.start();
        try {
            int seed = theirs.getCount();
            mine.setCount(11);
            int first = World.take(heard);
            VersionedValue<Integer> seen = mine.getVersionedValue();
            boolean set = mine.trySetCount(seen, 12);
            int second = World.take(heard);
            boolean stale = mine.trySetCount(seen, 13);
            return "seed " + seed + ", heard " + first + " " + second + ", set " + set + ", stale " + stale;
        } finally {
            mine.close();
            theirs.close();
        }
    }

    /** No number is handed out twice. */
    static String atomicLong(World w) throws Exception {
        Set<Long> handedOut = ConcurrentHashMap.newKeySet();
        w.together(3, i -> {
            DistributedAtomicLong counter =
                    new DistributedAtomicLong(w.client(), w.path + "/number", new RetryNTimes(1000, 2));
            for (int round = 0; round < 10; round++) {
                AtomicValue<Long> value = counter.increment();
                if (!value.succeeded() || !handedOut.add(value.postValue())) {
                    throw new IllegalStateException("failed, or handed out twice: " + value.postValue());
                }
            }
        });
        DistributedAtomicLong counter = new DistributedAtomicLong(w.client(), w.path + "/number", new RetryNTimes(0, 0));
        boolean wrong = counter.compareAndSet(7L, 8L).succeeded();
        boolean right = counter.compareAndSet(30L, -5L).succeeded();
        return handedOut.size() + " numbers, wrong " + wrong + ", right " + right + ", now " + counter.get().postValue();
    }

    /** Without retries, those who fail use a lock. */
    static String promotedLong(World w) throws Exception {
        PromotedToLock lock = PromotedToLock.builder()
                .lockPath(w.path + "/lock")
                .retryPolicy(new RetryNTimes(1000, 2))
                .build();
        w.together(3, i -> {
            DistributedAtomicLong counter =
                    new DistributedAtomicLong(w.client(), w.path + "/number", new RetryNTimes(0, 0), lock);
            for (int round = 0; round < 5; round++) {
                if (!counter.add(2L).succeeded()) {
                    throw new IllegalStateException("not counted");
                }
            }
        });
        DistributedAtomicLong counter = new DistributedAtomicLong(w.client(), w.path + "/number", new RetryNTimes(0, 0));
        return "now " + counter.get().postValue();
    }

    /** Numbers are fetched in blocks. */
    static String cachedLong(World w) throws Exception {
        DistributedAtomicLong number = new DistributedAtomicLong(w.client(), w.path + "/number", new RetryNTimes(10, 2));
        CachedAtomicLong cached = new CachedAtomicLong(number, 5);
        long last = 0;
        for (int i = 0; i < 7; i++) {
            last = cached.next().postValue();
        }
        return "last " + last + ", reserved " + number.get().postValue();
    }
}
