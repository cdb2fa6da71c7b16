import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.api.transaction.TransactionOp;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

/** The framework's own operations. */
final class Operations {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("protection", Operations::protection);
        scenarios.put("idempotence", Operations::idempotence);
        scenarios.put("background", Operations::background);
        scenarios.put("transaction", Operations::transaction);
        scenarios.put("failed-transaction", Operations::failedTransaction);
        scenarios.put("container", Operations::container);
        scenarios.put("ttl", Operations::ttl);
        scenarios.put("acl", Operations::acl);
        scenarios.put("questions", Operations::questions);
    }

    /** A create whose answer is lost is not made twice. */
    static String protection(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().forPath(w.path);
        String name = client.create()
                .withProtection()
                .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                .forPath(w.path + "/n-");
        List<String> nodes = client.getChildren().forPath(w.path);
        boolean mine = nodes.contains(name.substring(w.path.length() + 1));
        return nodes.size() + " node, mine " + mine + ", protected " + nodes.get(0).startsWith("_c_");
    }

    /** What is already as it was to become is taken for done. */
    static String idempotence(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().creatingParentsIfNeeded().forPath(w.path + "/a", "x".getBytes());
        client.delete().idempotent().forPath(w.path + "/never");
        client.setData().idempotent().withVersion(0).forPath(w.path + "/a", "y".getBytes());
        Stat stat = client.checkExists().forPath(w.path + "/a");
        String code = code(() -> client.delete().idempotent().withVersion(0).forPath(w.path + "/a"));
        return "version " + stat.getVersion() + ", " + code;
    }

    static String background(World w) throws Exception {
        CuratorFramework client = w.client();
        BlockingQueue<String> done = new LinkedBlockingQueue<>();
        client.create()
                .creatingParentContainersIfNeeded()
                .inBackground((c, e) -> done.add(e.getType() + " " + e.getResultCode()))
                .forPath(w.path + "/a/b", "x".getBytes());
        String create = World.take(done);
        client.getData().inBackground((c, e) -> done.add(e.getType() + " " + new String(e.getData()))).forPath(w.path + "/a/b");
        String get = World.take(done);
        client.getChildren().inBackground((c, e) -> done.add(e.getType() + " " + e.getChildren())).forPath(w.path);
        String children = World.take(done);
        client.delete().inBackground((c, e) -> done.add(e.getType() + " " + e.getResultCode())).forPath(w.path + "/none");
        String delete = World.take(done);
        client.sync().inBackground((c, e) -> done.add(e.getType() + " " + e.getResultCode())).forPath(w.path);
        return String.join(", ", create, get, children, delete, World.take(done));
    }

    static String transaction(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().forPath(w.path);
        TransactionOp op = client.transactionOp();
        List<CuratorTransactionResult> results = client.transaction().forOperations(
                op.create().forPath(w.path + "/a", "1".getBytes()),
                op.setData().withVersion(0).forPath(w.path + "/a", "2".getBytes()),
                op.check().withVersion(1).forPath(w.path + "/a"),
                op.create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath(w.path + "/s-"),
                op.create().withMode(CreateMode.CONTAINER).forPath(w.path + "/c"),
                op.create().withTtl(60_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(w.path + "/t"),
                op.delete().withVersion(1).forPath(w.path + "/a"));
        String types = results.stream()
                .map(r -> r.getType() + (r.getResultPath() == null ? "" : " " + r.getResultPath().substring(w.path.length())))
                .collect(Collectors.joining(", "));
        return types + ", version " + results.get(1).getResultStat().getVersion();
    }

    static String failedTransaction(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().forPath(w.path);
        TransactionOp op = client.transactionOp();
        try {
            client.transaction().forOperations(
                    op.create().forPath(w.path + "/a"),
                    op.create().forPath(w.path),
                    op.delete().forPath(w.path + "/a"));
            return "it worked";
        } catch (KeeperException e) {
            String codes = e.getResults().stream()
                    .map(r -> String.valueOf(((OpResult.ErrorResult) r).getErr()))
                    .collect(Collectors.joining(" "));
            return e.code() + ", " + codes + ", children " + client.getChildren().forPath(w.path).size();
        }
    }

    /** A container goes when its last child has gone. */
    static String container(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().forPath(w.path);
        client.create().withMode(CreateMode.CONTAINER).forPath(w.path + "/c");
        client.create().forPath(w.path + "/c/child");
        client.delete().forPath(w.path + "/c/child");
        World.until("it is gone", () -> client.checkExists().forPath(w.path + "/c") == null);
        return "gone";
    }

    static String ttl(World w) throws Exception {
        CuratorFramework client = w.client();
        client.create().forPath(w.path);
        String path = client.create()
                .withTtl(300)
                .withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL)
                .forPath(w.path + "/t-");
        Stat stat = new Stat();
        client.create()
                .withTtl(600_000)
                .storingStatIn(stat)
                .withMode(CreateMode.PERSISTENT_WITH_TTL)
                .forPath(w.path + "/long");
        long owner = client.checkExists().forPath(w.path + "/long").getEphemeralOwner();
        World.until("it is gone", () -> client.checkExists().forPath(path) == null);
        return Long.toHexString(stat.getEphemeralOwner()) + " then " + Long.toHexString(owner) + ", left " + client.getChildren().forPath(w.path);
    }

    static String acl(World w) throws Exception {
        ACLProvider mine = new ACLProvider() {
            @Override
            public List<ACL> getDefaultAcl() {
                return ZooDefs.Ids.CREATOR_ALL_ACL;
            }

            @Override
            public List<ACL> getAclForPath(String path) {
                return ZooDefs.Ids.CREATOR_ALL_ACL;
            }
        };
        CuratorFramework owner =
                w.client(w.plain().authorization("digest", "ann:secret".getBytes()).aclProvider(mine));
        CuratorFramework stranger = w.client();
        owner.create().forPath(w.path, "x".getBytes());
        ACL acl = owner.getACL().forPath(w.path).get(0);
        Map<String, String> answers = new TreeMap<>();
        answers.put("get", code(() -> stranger.getData().forPath(w.path)));
        answers.put("set", code(() -> stranger.setData().forPath(w.path)));
        answers.put("list", code(() -> stranger.getChildren().forPath(w.path)));
        answers.put("create", code(() -> stranger.create().forPath(w.path + "/a")));
        answers.put("acl", code(() -> stranger.getACL().forPath(w.path)));
        answers.put("exists", code(() -> stranger.checkExists().forPath(w.path)));
        CuratorFramework friend = w.client(w.plain().authorization("digest", "ann:secret".getBytes()));
        answers.put("friend", code(() -> friend.setData().forPath(w.path)));
        owner.setACL().withACL(ZooDefs.Ids.READ_ACL_UNSAFE).forPath(w.path);
        answers.put("opened", code(() -> stranger.getData().forPath(w.path)));
        return acl.getId().getScheme() + " " + acl.getId().getId().split(":")[0] + " " + acl.getPerms() + " " + answers;
    }

    /** What a client can ask the server about itself. */
    static String questions(World w) throws Exception {
        CuratorFramework client =
                w.client(w.plain().authorization("digest", "ann:secret".getBytes()));
        client.create().creatingParentsIfNeeded().withMode(CreateMode.EPHEMERAL).forPath(w.path + "/a/e1");
        client.create().withMode(CreateMode.EPHEMERAL).forPath(w.path + "/e2");
        var zk = client.getZookeeperClient().getZooKeeper();
        String ephemerals = zk.getEphemerals().stream().sorted().collect(Collectors.joining(" "));
        String some = String.join(" ", zk.getEphemerals(w.path + "/a"));
        String who = zk.whoAmI().stream()
                .map(info -> info.getAuthScheme() + " " + info.getUser())
                .sorted()
                .collect(Collectors.joining(", "));
        return ephemerals + ", " + some + ", " + zk.getAllChildrenNumber(w.path) + " below, " + who
                + ", config " + client.getConfig().forEnsemble().length;
    }

    /** A call that may fail with a code. */
    interface Call {
        Object make() throws Exception;
    }

    static String code(Call call) throws Exception {
        try {
            call.make();
            return "OK";
        } catch (KeeperException e) {
            return e.code().toString();
        }
    }
}
