import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;

/** Watches: once, persistent and recursive, and their removal. */
final class Watches {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("one-shot-watches", Watches::oneShot);
        scenarios.put("persistent-watch", w -> persistent(w, false));
        scenarios.put("recursive-watch", w -> persistent(w, true));
        scenarios.put("watch-removal", Watches::removal);
        scenarios.put("persistent-watch-removal", Watches::persistentRemoval);
    }

    static String oneShot(World w) throws Exception {
        CuratorFramework client = w.client();
        CuratorFramework other = w.client();
        client.create().forPath(w.path);
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        CuratorWatcher watcher = e -> events.add(describe(w, e));
        List<String> heard = new ArrayList<>();
        client.checkExists().usingWatcher(watcher).forPath(w.path + "/a");
        other.create().forPath(w.path + "/a");
        heard.add(World.take(events));
        client.getData().usingWatcher(watcher).forPath(w.path + "/a");
        other.setData().forPath(w.path + "/a", "x".getBytes());
        heard.add(World.take(events));
        other.setData().forPath(w.path + "/a", "unheard".getBytes());
        client.getChildren().usingWatcher(watcher).forPath(w.path);
        other.delete().forPath(w.path + "/a");
        heard.add(World.take(events));
        client.sync().forPath(w.path);
        return String.join(", ", heard) + (events.isEmpty() ? "" : " and more");
    }

    /** One watch hears everything, and a recursive one of all that is below, too. */
    static String persistent(World w, boolean recursive) throws Exception {
        CuratorFramework other = w.client();
        other.create().forPath(w.path);
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        CountDownLatch set = new CountDownLatch(1);
        PersistentWatcher watcher = w.closing(new PersistentWatcher(w.client(), w.path, recursive));
        watcher.getListenable().addListener(e -> events.add(describe(w, e)));
        watcher.getResetListenable().addListener(set::countDown);
        watcher.start();
        if (!set.await(World.PATIENCE, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the watch was not set");
        }
        other.create().creatingParentsIfNeeded().forPath(w.path + "/a/b");
        other.setData().forPath(w.path + "/a/b", "x".getBytes());
        other.setData().forPath(w.path, "x".getBytes());
        other.setData().forPath(w.path, "y".getBytes());
        other.delete().forPath(w.path + "/a/b");
        other.delete().forPath(w.path + "/a");
        other.delete().forPath(w.path);
        List<String> heard = new ArrayList<>();
        do {
            heard.add(World.take(events));
        } while (!heard.get(heard.size() - 1).equals("NodeDeleted /"));
        return String.join(", ", heard);
    }

    static String removal(World w) throws Exception {
        CuratorFramework client = w.client();
        CuratorFramework other = w.client();
        client.create().forPath(w.path, "0".getBytes());
        BlockingQueue<String> first = new LinkedBlockingQueue<>();
        BlockingQueue<String> second = new LinkedBlockingQueue<>();
        CuratorWatcher one = e -> first.add(describe(w, e));
        CuratorWatcher two = e -> second.add(describe(w, e));
        client.getData().usingWatcher(one).forPath(w.path);
        client.getData().usingWatcher(two).forPath(w.path);
        client.watches().remove(one).forPath(w.path);
        String removed = World.take(first);
        String again = Operations.code(() -> client.watches().remove(one).forPath(w.path));
        other.setData().forPath(w.path, "1".getBytes());
        String kept = World.take(second);
        client.getChildren().usingWatcher(two).forPath(w.path);
        client.watches().removeAll().ofType(Watcher.WatcherType.Children).forPath(w.path);
        String all = World.take(second);
        String none = Operations.code(() -> client.watches().removeAll().forPath(w.path));
        other.create().forPath(w.path + "/unheard");
        client.sync().forPath(w.path);
        return String.join(", ", removed, again, kept, all, none) + (first.isEmpty() && second.isEmpty() ? "" : " and more");
    }

    static String persistentRemoval(World w) throws Exception {
        CuratorFramework client = w.client();
        CuratorFramework other = w.client();
        client.create().forPath(w.path);
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        Watcher watcher = e -> events.add(describe(w, e));
        client.watchers().add().withMode(AddWatchMode.PERSISTENT_RECURSIVE).usingWatcher(watcher).forPath(w.path);
        other.create().forPath(w.path + "/a");
        String created = World.take(events);
        client.watches().remove(watcher).forPath(w.path);
        String removed = World.take(events);
        other.delete().forPath(w.path + "/a");
        client.sync().forPath(w.path);
        return created + ", " + removed + (events.isEmpty() ? "" : " and more");
    }

    static String describe(World w, WatchedEvent e) {
        String path = e.getPath() == null ? "" : e.getPath().substring(w.path.length());
        return e.getType() + " " + (path.isEmpty() ? "/" : path);
    }
}
