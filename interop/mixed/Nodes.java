import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.NodeCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.watch.PersistentWatcher;
import org.apache.zookeeper.CreateMode;

/** Kept nodes, and views of nodes: "list" returns NODE=DATA of all, and "write NODE=DATA" writes one with plain Curator. */
final class Nodes {
    static void addTo(Map<String, Half.Kind> kinds) {
        kinds.put("persistent-node", Nodes::persistentNode);
        kinds.put("curator-cache", (client, path, x) -> {
            CuratorCache cache = CuratorCache.build(client, path);
            cache.start();
            return view(client, path, all -> cache.stream().forEach(d -> add(all, path, d)));
        });
        kinds.put("tree-cache", (client, path, x) -> {
            TreeCache cache = new TreeCache(client, path);
            cache.start();
            return view(client, path, all -> tree(all, path, cache, path));
        });
        kinds.put("node-cache", (client, path, x) -> {
            NodeCache cache = new NodeCache(client, path);
            cache.start(true);
            return view(client, path, all -> add(all, path, cache.getCurrentData()));
        });
        kinds.put("path-cache", (client, path, x) -> {
            PathChildrenCache cache = new PathChildrenCache(client, path, true);
            cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
            return view(client, path, all -> cache.getCurrentData().forEach(d -> add(all, path, d)));
        });
        kinds.put("watcher", Nodes::watcher);
    }

    private interface Contents {
        void addTo(Map<String, String> all) throws Exception;
    }

    private static void add(Map<String, String> all, String root, ChildData d) {
        if (d != null) {
            all.put(d.getPath().equals(root) ? "." : d.getPath().substring(root.length() + 1), text(d.getData()));
        }
    }

    private static void tree(Map<String, String> all, String root, TreeCache cache, String path) {
        add(all, root, cache.getCurrentData(path));
        Map<String, ChildData> children = cache.getCurrentChildren(path);
        if (children != null) {
            children.values().forEach(d -> tree(all, root, cache, d.getPath()));
        }
    }

    private static String text(byte[] data) {
        return data == null ? "" : new String(data, StandardCharsets.UTF_8);
    }

    private static Half.Recipe view(CuratorFramework client, String path, Contents contents) {
        return (verb, argument) -> {
            switch (verb) {
                case "list":
                    Map<String, String> all = new TreeMap<>();
                    contents.addTo(all);
                    StringBuilder line = new StringBuilder();
                    all.forEach((name, data) -> line.append(line.length() > 0 ? "," : "").append(name + "=" + data));
                    return line.toString();
                case "write":
                    int at = argument.indexOf('=');
                    client.create().orSetData().creatingParentsIfNeeded().forPath(
                            path + "/" + argument.substring(0, at),
                            argument.substring(at + 1).getBytes(StandardCharsets.UTF_8));
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe watcher(CuratorFramework client, String path, String argument) throws Exception {
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        PersistentWatcher watcher = new PersistentWatcher(client, path, true);
        watcher.getListenable().addListener(e -> {
            if (e.getPath() != null) {
                events.add(e.getType() + ":" + e.getPath());
            }
        });
        watcher.start();
        client.getData().forPath(path); // answered after the watch, which is set in the background
        return (verb, words) -> {
            String event = events.poll(Half.PATIENCE, TimeUnit.SECONDS);
            return event == null ? "none" : event;
        };
    }

    private static Half.Recipe persistentNode(CuratorFramework client, String path, String argument) {
        PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, path,
                argument.getBytes(StandardCharsets.UTF_8));
        return (verb, words) -> {
            switch (verb) {
                case "enter":
                    node.start();
                    return "";
                case "try":
                    return "" + node.waitForInitialCreate(Half.limit(words), TimeUnit.MILLISECONDS);
                case "leave":
                    node.close();
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }
}
