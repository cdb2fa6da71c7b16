import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.CreateMode;

/** Nodes that are kept alive, groups, and queues. */
final class Nodes {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("persistent-node", Nodes::persistentNode);
        scenarios.put("persistent-ttl-node", Nodes::ttlNode);
        scenarios.put("group-member", Nodes::groupMember);
        scenarios.put("queue", Nodes::queue);
        scenarios.put("priority-queue", Nodes::priorityQueue);
        scenarios.put("simple-queue", Nodes::simpleQueue);
    }

    /** The node comes back when somebody deletes it. */
    static String persistentNode(World w) throws Exception {
        CuratorFramework other = w.client();
        String path = w.path + "/node";
        PersistentNode node = new PersistentNode(w.client(), CreateMode.EPHEMERAL, false, path, "a".getBytes());
        node.start();
        boolean created = node.waitForInitialCreate(World.PATIENCE, TimeUnit.SECONDS);
        other.delete().forPath(path);
        World.until("it is there again", () -> other.checkExists().forPath(path) != null);
        node.setData("b".getBytes());
        World.until("it has the new data", () -> new String(other.getData().forPath(path)).equals("b"));
        node.close();
        boolean gone = other.checkExists().forPath(path) == null;
        return "created " + created + ", gone " + gone;
    }

    /**
     * The node outlives its time to live while it is kept alive, and not for long after. It is touched ten times in
     * that time, so that a busy machine may forget nine of them.
     */
    static String ttlNode(World w) throws Exception {
        CuratorFramework other = w.client();
        String path = w.path + "/node";
        String child = PersistentTtlNode.DEFAULT_CHILD_NODE_NAME;
        ScheduledExecutorService clock = Executors.newSingleThreadScheduledExecutor();
        PersistentTtlNode node = new PersistentTtlNode(w.client(), clock, path, 5000, "a".getBytes(), child, 10);
        node.start();
        boolean created = node.waitForInitialCreate(World.PATIENCE, TimeUnit.SECONDS);
        World.until("it was kept alive", () -> {
            var stat = other.checkExists().forPath(path + "/" + child);
            return stat != null && stat.getVersion() >= 12;
        });
        String data = new String(other.getData().forPath(path));
        node.close();
        clock.shutdown();
        World.until("its time is over", () -> other.checkExists().forPath(path) == null);
        return "created " + created + ", data " + data;
    }

    static String groupMember(World w) throws Exception {
        List<GroupMember> members = new ArrayList<>();
        for (String name : List.of("a", "b", "c")) {
            members.add(w.closing(new GroupMember(w.client(), w.path + "/group", name, name.getBytes())));
        }
        for (GroupMember member : members) {
            member.start();
        }
        for (GroupMember member : members) {
            World.until("all are seen", () -> member.getCurrentMembers().size() == 3);
        }
        members.get(1).close();
        World.until("one has left", () -> members.get(0).getCurrentMembers().size() == 2);
        return String.join(" ", new TreeSet<>(members.get(0).getCurrentMembers().keySet()));
    }

    private static final QueueSerializer<String> TEXT = new QueueSerializer<>() {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes();
        }

        @Override
        public String deserialize(byte[] bytes) {
            return new String(bytes);
        }
    };

    private static QueueConsumer<String> into(BlockingQueue<String> queue) {
        return new QueueConsumer<>() {
            @Override
            public void consumeMessage(String message) {
                queue.add(message);
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
    }

    /** Each item is consumed by one of two consumers; items are locked meanwhile. */
    static String queue(World w) throws Exception {
        BlockingQueue<String> consumed = new LinkedBlockingQueue<>();
        List<DistributedQueue<String>> queues = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            queues.add(w.closing(QueueBuilder.builder(w.client(), into(consumed), TEXT, w.path + "/queue")
                    .lockPath(w.path + "/locks")
                    .buildQueue()));
        }
        for (DistributedQueue<String> queue : queues) {
            queue.start();
        }
        for (int i = 0; i < 10; i++) {
            queues.get(i % 2).put("item" + i);
        }
        List<String> all = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            all.add(World.take(consumed));
        }
        queues.get(0).flushPuts(World.PATIENCE, TimeUnit.SECONDS);
        CuratorFramework client = w.client();
        World.until("all items are gone", () -> client.getChildren().forPath(w.path + "/queue").isEmpty());
        Collections.sort(all);
        return String.join(" ", all) + (consumed.isEmpty() ? "" : " and more");
    }

    static String priorityQueue(World w) throws Exception {
        DistributedPriorityQueue<String> producer = w.closing(
                QueueBuilder.builder(w.client(), null, TEXT, w.path + "/queue").buildPriorityQueue(1));
        producer.start();
        producer.put("late", 9);
        producer.put("soon", 1);
        producer.put("now", -3);
        producer.flushPuts(World.PATIENCE, TimeUnit.SECONDS);
        BlockingQueue<String> consumed = new LinkedBlockingQueue<>();
        DistributedPriorityQueue<String> consumer = w.closing(
                QueueBuilder.builder(w.client(), into(consumed), TEXT, w.path + "/queue").buildPriorityQueue(1));
        consumer.start();
        return World.take(consumed) + " " + World.take(consumed) + " " + World.take(consumed);
    }

    static String simpleQueue(World w) throws Exception {
        CuratorFramework client = w.client();
        // Not a container: the queue fails if it is removed while it is looked at.
        client.create().creatingParentsIfNeeded().forPath(w.path + "/queue");
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client, w.path + "/queue");
        var waiting = w.background(() -> new String(queue.take()));
        SimpleDistributedQueue other = new SimpleDistributedQueue(w.client(), w.path + "/queue");
        other.offer("1".getBytes());
        String first = World.get(waiting);
        other.offer("2".getBytes());
        other.offer("3".getBytes());
        String peeked = new String(queue.peek());
        return first + peeked + new String(queue.poll()) + new String(queue.remove()) + queue.poll();
    }
}
