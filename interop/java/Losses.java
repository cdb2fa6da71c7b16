import java.util.Map;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;

/** How the recipes recover from lost connections, lost sessions and a server that comes back. */
final class Losses {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("expired-holder", Losses::expiredHolder);
        scenarios.put("expired-waiter", Losses::expiredWaiter);
        scenarios.put("cut-holder", Losses::cutHolder);
        scenarios.put("expired-leader", Losses::expiredLeader);
        scenarios.put("cut-leader", Losses::cutLeader);
        scenarios.put("cut-cache", Losses::cutCache);
        scenarios.put("cut-watches", Losses::cutWatches);
        scenarios.put("expired-cache", Losses::expiredCache);
        scenarios.put("expired-nodes", Losses::expiredNodes);
        scenarios.put("restart", Losses::restart);
    }

    /** Returns the states of the connection from now on. That it was made may be told only now. */
    private static BlockingQueue<String> states(CuratorFramework client) {
        BlockingQueue<String> states = new LinkedBlockingQueue<>();
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state != ConnectionState.CONNECTED) {
                states.add(state.name());
            }
        });
        return states;
    }

    /** The lock goes to the next when the holder's session has expired, and the holder is told. */
    static String expiredHolder(World w) throws Exception {
        CuratorFramework holder = w.client();
        BlockingQueue<String> states = states(holder);
        InterProcessMutex mine = new InterProcessMutex(holder, w.path + "/lock");
        mine.acquire();
        InterProcessMutex next = new InterProcessMutex(w.client(), w.path + "/lock");
        Future<Boolean> waiting = w.background(() -> {
            boolean acquired = next.acquire(World.PATIENCE, TimeUnit.SECONDS);
            next.release();
            return acquired;
        });
        World.until("it waits", () -> mine.getParticipantNodes().size() == 2);
        w.expire(holder);
        boolean taken = World.get(waiting);
        return "taken " + taken + ", " + World.take(states) + " " + World.take(states) + " " + World.take(states);
    }

    /** Whoever waits for a lock gets it in a new session: it queues again at once, or when its turn would have come. */
    static String expiredWaiter(World w) throws Exception {
        InterProcessMutex mine = new InterProcessMutex(w.client(), w.path + "/lock");
        mine.acquire();
        CuratorFramework other = w.client();
        BlockingQueue<String> states = states(other);
        InterProcessMutex next = new InterProcessMutex(other, w.path + "/lock");
        Future<Boolean> waiting = w.background(() -> {
            boolean acquired = next.acquire(World.PATIENCE, TimeUnit.SECONDS);
            next.release();
            return acquired;
        });
        World.until("it waits", () -> mine.getParticipantNodes().size() == 2);
        w.expire(other);
        World.until("it has a new session", () -> World.take(states).equals("RECONNECTED"));
        boolean early = waiting.isDone();
        mine.release();
        return "early " + early + ", taken " + World.get(waiting);
    }

    /** A lock outlives the connection that it was taken on. */
    static String cutHolder(World w) throws Exception {
        CuratorFramework holder = w.client();
        BlockingQueue<String> states = states(holder);
        InterProcessMutex mine = new InterProcessMutex(holder, w.path + "/lock");
        mine.acquire();
        w.disconnect(holder);
        String seen = World.take(states) + " " + World.take(states);
        InterProcessMutex next = new InterProcessMutex(w.client(), w.path + "/lock");
        boolean early = next.acquire(50, TimeUnit.MILLISECONDS);
        mine.release();
        boolean taken = next.acquire(World.PATIENCE, TimeUnit.SECONDS);
        next.release();
        return seen + ", early " + early + ", taken " + taken;
    }

    /** Another leads, and the old leader stands in line again. */
    static String expiredLeader(World w) throws Exception {
        CuratorFramework first = w.client();
        LeaderLatch a = w.closing(new LeaderLatch(first, w.path + "/leader", "a"));
        a.start();
        a.await();
        LeaderLatch b = new LeaderLatch(w.client(), w.path + "/leader", "b");
        b.start();
        World.until("both are in line", () -> b.getParticipants().size() == 2);
        w.expire(first);
        boolean led = b.await(World.PATIENCE, TimeUnit.SECONDS);
        World.until("the old one is in line again", () -> b.getParticipants().size() == 2);
        boolean two = a.hasLeadership();
        b.close();
        boolean back = a.await(World.PATIENCE, TimeUnit.SECONDS);
        return "led " + led + ", two " + two + ", back " + back;
    }

    /** A leader whose connection was cut steps down and leads again, on the same node. */
    static String cutLeader(World w) throws Exception {
        CuratorFramework first = w.client();
        LeaderLatch a = w.closing(new LeaderLatch(first, w.path + "/leader", "a"));
        BlockingQueue<String> told = new LinkedBlockingQueue<>();
        a.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                told.add("leader");
            }

            @Override
            public void notLeader() {
                told.add("not leader");
            }
        });
        a.start();
        String start = World.take(told);
        w.disconnect(first);
        return start + ", " + World.take(told) + ", " + World.take(told);
    }

    /** What happened while the connection was down is heard, through the same watch. */
    static String cutCache(World w) throws Exception {
        CuratorFramework cut = w.client();
        CuratorFramework other = w.client();
        other.create().creatingParentsIfNeeded().forPath(w.path + "/a", "0".getBytes());
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        CuratorCache cache = w.closing(CuratorCache.build(cut, w.path));
        cache.listenable().addListener(Caches.listener(w, events));
        BlockingQueue<String> states = states(cut);
        cache.start();
        World.until("initialized", () -> World.take(events).equals("initialized"));
        w.disconnect(cut);
        other.setData().forPath(w.path + "/a", "1".getBytes());
        other.create().forPath(w.path + "/b", "2".getBytes());
        String seen = World.take(states) + " " + World.take(states);
        World.until("both are cached", () -> cache.get(w.path + "/b").isPresent()
                && new String(cache.get(w.path + "/a").get().getData()).equals("1"));
        other.setData().forPath(w.path + "/b", "3".getBytes());
        World.until("the watch lives", () -> new String(cache.get(w.path + "/b").get().getData()).equals("3"));
        return seen + ", " + cache.size() + " nodes";
    }

    /** Watches of every kind outlive the connection, and what they missed is told, but to persistent ones. */
    static String cutWatches(World w) throws Exception {
        CuratorFramework cut = w.client();
        CuratorFramework other = w.client();
        BlockingQueue<String> states = states(cut);
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        CuratorWatcher once = e -> {
            if (e.getType() != EventType.None) {
                events.add(Watches.describe(w, e));
            }
        };
        other.create().creatingParentsIfNeeded().forPath(w.path + "/a", "0".getBytes());
        other.create().forPath(w.path + "/later", "0".getBytes());
        other.create().forPath(w.path + "/below");
        cut.getData().usingWatcher(once).forPath(w.path + "/a");
        cut.getData().usingWatcher(once).forPath(w.path + "/later");
        cut.checkExists().usingWatcher(once).forPath(w.path + "/b");
        cut.getChildren().usingWatcher(once).forPath(w.path);
        BlockingQueue<String> below = new LinkedBlockingQueue<>();
        Watcher lasting = e -> below.add(Watches.describe(w, e));
        cut.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(lasting).forPath(w.path + "/below");
        w.disconnect(cut);
        other.setData().forPath(w.path + "/a", "1".getBytes());
        other.create().forPath(w.path + "/b");
        SortedSet<String> heard = new TreeSet<>();
        for (int i = 0; i < 3; i++) {
            heard.add(World.take(events));
        }
        World.until("connected", () -> World.take(states).equals("RECONNECTED"));
        other.setData().forPath(w.path + "/later", "1".getBytes());
        heard.add(World.take(events));
        other.create().forPath(w.path + "/below/child");
        World.until("the lasting watch lives", () -> World.take(below).equals("NodeCreated /below/child"));
        return String.join(", ", heard) + (events.isEmpty() ? "" : " and more");
    }

    /** After an expiry the cache sets its watch again and catches up. */
    static String expiredCache(World w) throws Exception {
        CuratorFramework expired = w.client();
        CuratorFramework other = w.client();
        other.create().creatingParentsIfNeeded().forPath(w.path + "/a", "0".getBytes());
        CuratorCache cache = w.closing(CuratorCache.build(expired, w.path));
        cache.start();
        World.until("cached", () -> cache.size() == 2);
        w.expire(expired);
        other.delete().forPath(w.path + "/a");
        other.create().forPath(w.path + "/b", "1".getBytes());
        World.until("caught up", () -> cache.get(w.path + "/b").isPresent() && cache.get(w.path + "/a").isEmpty());
        other.setData().forPath(w.path + "/b", "2".getBytes());
        World.until("the watch lives", () -> new String(cache.get(w.path + "/b").get().getData()).equals("2"));
        return cache.size() + " nodes";
    }

    /** A node and a membership that are kept alive are made again in the new session. */
    static String expiredNodes(World w) throws Exception {
        CuratorFramework expired = w.client();
        CuratorFramework other = w.client();
        PersistentNode node = w.closing(
                new PersistentNode(expired, CreateMode.EPHEMERAL, false, w.path + "/node", "a".getBytes()));
        node.start();
        node.waitForInitialCreate(World.PATIENCE, TimeUnit.SECONDS);
        GroupMember member = w.closing(new GroupMember(expired, w.path + "/group", "m"));
        member.start();
        World.until("it is a member", () -> other.checkExists().forPath(w.path + "/group/m") != null);
        long before = other.checkExists().forPath(w.path + "/node").getEphemeralOwner();
        w.expire(expired);
        World.until("the node is back", () -> owned(other, w.path + "/node", before));
        World.until("the membership is back", () -> owned(other, w.path + "/group/m", before));
        return "back";
    }

    private static boolean owned(CuratorFramework client, String path, long not) throws Exception {
        var stat = client.checkExists().forPath(path);
        return stat != null && stat.getEphemeralOwner() != not;
    }

    /** Everything goes on after the server was away, in the same sessions. */
    static String restart(World w) throws Exception {
        CuratorFramework one = w.client();
        CuratorFramework two = w.client();
        InterProcessMutex mine = new InterProcessMutex(one, w.path + "/lock");
        mine.acquire();
        InterProcessMutex next = new InterProcessMutex(two, w.path + "/lock");
        Future<Boolean> lock = w.background(() -> {
            boolean acquired = next.acquire(World.PATIENCE, TimeUnit.SECONDS);
            next.release();
            return acquired;
        });
        World.until("it waits", () -> mine.getParticipantNodes().size() == 2);
        DistributedBarrier barrier = new DistributedBarrier(one, w.path + "/barrier");
        barrier.setBarrier();
        Future<Boolean> passed = w.background(
                () -> new DistributedBarrier(two, w.path + "/barrier").waitOnBarrier(World.PATIENCE, TimeUnit.SECONDS));
        SharedCount count = w.closing(new SharedCount(two, w.path + "/count", 1));
        SharedCount writer = w.closing(new SharedCount(one, w.path + "/count", 1));
        writer.start();
        count.start();
        CuratorCache cache = w.closing(CuratorCache.build(two, w.path + "/count"));
        cache.start();
        long session = one.getZookeeperClient().getZooKeeper().getSessionId();
        w.restart();
        writer.setCount(2);
        World.until("the count is heard of", () -> count.getCount() == 2);
        World.until("the cache has it", () -> cache.get(w.path + "/count").map(d -> d.getData()[3]).orElse((byte) 0) == 2);
        boolean early = lock.isDone() || passed.isDone();
        mine.release();
        barrier.removeBarrier();
        boolean same = one.getZookeeperClient().getZooKeeper().getSessionId() == session;
        return "early " + early + ", lock " + World.get(lock) + ", barrier " + World.get(passed) + ", same session " + same;
    }
}
