import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;

/** The caches: PathChildrenCache, TreeCache and NodeCache on one-shot watches, CuratorCache on a persistent one. */
final class Caches {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("path-children-cache", Caches::pathChildren);
        scenarios.put("tree-cache", Caches::tree);
        scenarios.put("node-cache", Caches::node);
        scenarios.put("curator-cache", Caches::curator);
        scenarios.put("single-node-cache", Caches::singleNode);
    }

    static String pathChildren(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/here/old", bytes("0"));
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        PathChildrenCache cache = w.closing(new PathChildrenCache(w.client(), w.path + "/here", true));
        cache.getListenable().addListener((c, e) -> hear(w, events, e.getType().name(), e.getData()));
        cache.start(PathChildrenCache.StartMode.POST_INITIALIZED_EVENT);
        List<String> heard = new ArrayList<>();
        heard.add(World.take(events));
        heard.add(World.take(events));
        for (Change change : changes(client, w.path + "/here/")) {
            change.make();
            heard.add(World.take(events));
        }
        return String.join(", ", heard);
    }

    static String tree(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/here/old", bytes("0"));
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        TreeCache cache = w.closing(new TreeCache(w.client(), w.path + "/here"));
        cache.getListenable().addListener((c, e) -> hear(w, events, e.getType().name(), e.getData()));
        cache.start();
        List<String> heard = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            heard.add(World.take(events));
        }
        for (Change change : changes(client, w.path + "/here/")) {
            change.make();
            heard.add(World.take(events));
        }
        return String.join(", ", heard);
    }

    static String node(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/here");
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        NodeCache cache = w.closing(new NodeCache(w.client(), w.path + "/here/a"));
        cache.getListenable().addListener(
                () -> events.add(cache.getCurrentData() == null ? "none" : describe(w, cache.getCurrentData())));
        cache.start(true);
        List<String> heard = new ArrayList<>();
        for (Change change : List.<Change>of(
                () -> client.create().forPath(w.path + "/here/a", bytes("1")),
                () -> client.setData().forPath(w.path + "/here/a", bytes("2")),
                () -> client.delete().forPath(w.path + "/here/a"))) {
            change.make();
            heard.add(World.take(events));
        }
        return String.join(", ", heard);
    }

    static String curator(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/here/old", bytes("0"));
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        CuratorCache cache = w.closing(CuratorCache.build(w.client(), w.path + "/here"));
        cache.listenable().addListener(listener(w, events));
        cache.start();
        List<String> heard = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            heard.add(World.take(events));
        }
        for (Change change : changes(client, w.path + "/here/")) {
            change.make();
            heard.add(World.take(events));
        }
        // A whole subtree at once: the watch is recursive.
        client.create().creatingParentsIfNeeded().forPath(w.path + "/here/x/y/z", bytes("deep"));
        for (int i = 0; i < 3; i++) {
            heard.add(World.take(events));
        }
        return String.join(", ", heard);
    }

    /** A cache of one node does not look at its children. */
    static String singleNode(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/here", bytes("0"));
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        CuratorCache cache = w.closing(
                CuratorCache.build(w.client(), w.path + "/here", CuratorCache.Options.SINGLE_NODE_CACHE));
        cache.listenable().addListener(listener(w, events));
        cache.start();
        List<String> heard = new ArrayList<>();
        heard.add(World.take(events));
        heard.add(World.take(events));
        client.create().forPath(w.path + "/here/child", bytes("unseen"));
        client.delete().forPath(w.path + "/here/child");
        client.setData().forPath(w.path + "/here", bytes("1"));
        heard.add(World.take(events));
        client.delete().forPath(w.path + "/here");
        heard.add(World.take(events));
        client.create().forPath(w.path + "/here", bytes("2"));
        heard.add(World.take(events));
        return String.join(", ", heard);
    }

    /** Puts an event into a queue; not that the client is connected, of which a new cache is told or not. */
    private static void hear(World w, BlockingQueue<String> events, String type, ChildData node) {
        if (!type.startsWith("CONNECTION_")) {
            events.add(node == null ? type : type + " " + describe(w, node));
        }
    }

    static CuratorCacheListener listener(World w, BlockingQueue<String> events) {
        return CuratorCacheListener.builder()
                .forInitialized(() -> events.add("initialized"))
                .forCreates(node -> events.add("created " + describe(w, node)))
                .forChanges((before, now) -> events.add("changed " + describe(w, now)))
                .forDeletes(node -> events.add("deleted " + describe(w, node)))
                .build();
    }

    /** Something that somebody else does to what is cached. */
    private interface Change {
        void make() throws Exception;
    }

    private static List<Change> changes(CuratorFramework client, String prefix) {
        return List.of(
                () -> client.create().forPath(prefix + "a", bytes("1")),
                () -> client.setData().forPath(prefix + "a", bytes("2")),
                () -> client.create().forPath(prefix + "b", bytes("3")),
                () -> client.delete().forPath(prefix + "a"),
                () -> client.setData().forPath(prefix + "old", bytes("4")));
    }

    private static byte[] bytes(String text) {
        return text.getBytes();
    }

    private static String describe(World w, ChildData node) {
        return node.getPath().substring(w.path.length() + 1) + "=" + new String(node.getData());
    }
}
