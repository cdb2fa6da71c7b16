import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.ZooKeeper;

/**
 * The Java half of a system whose other half uses menagerie. Arguments: SERVERS.
 *
 * It reads lines: "NAME open KIND PATH [ARGUMENT]" makes a recipe with a session of its own, "NAME VERB [ARGUMENT]" uses it,
 * "NAME session" returns the session's id and password. Each is answered "NAME ok TEXT" or "NAME failed REASON". The
 * names run at the same time; the lines of one name run one after the other. It ends with its input.
 */
public final class Half {
    /** How long a step may take that ought to succeed, in seconds. */
    static final int PATIENCE = 120;

    /** How long a step waits that may well not succeed, in milliseconds. */
    static final int MOMENT = 500;

    /** How long a "try" waits, in milliseconds: "try long" is for one that ought to succeed, however busy the machine is. */
    static long limit(String argument) {
        return argument.equals("long") ? PATIENCE * 1000L : MOMENT;
    }

    /** A recipe in use. */
    interface Recipe {
        String use(String verb, String argument) throws Exception;
    }

    /** Makes a recipe at a path. */
    interface Kind {
        Recipe open(CuratorFramework client, String path, String argument) throws Exception;
    }

    private final Map<String, Kind> kinds = new TreeMap<>();
    private final Map<String, ExecutorService> threads = new TreeMap<>();
    private final Map<String, Recipe> recipes = new ConcurrentHashMap<>();
    private final Map<String, CuratorFramework> clients = new ConcurrentHashMap<>();
    private final String servers;

    private Half(String servers) {
        this.servers = servers;
        Locks.addTo(kinds);
        Meetings.addTo(kinds);
        Records.addTo(kinds);
        Nodes.addTo(kinds);
    }

    public static void main(String[] args) throws Exception {
        Half half = new Half(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            half.threads.computeIfAbsent(words[0], name -> Executors.newSingleThreadExecutor())
                    .submit(() -> half.answer(words));
        }
        System.exit(0); // the sessions are left to the servers, as after a kill
    }

    private void answer(String[] words) {
        String text;
        try {
            text = "ok " + run(words[0], words[1], words);
        } catch (Throwable e) {
            e.printStackTrace();
            text = "failed " + e.toString().replace('\n', ' ');
        }
        synchronized (System.out) {
            System.out.println(words[0] + " " + text);
        }
    }

    private String run(String name, String verb, String[] words) throws Exception {
        switch (verb) {
            case "open":
                CuratorFramework client = connect();
                clients.put(name, client);
                recipes.put(name, kinds.get(words[2]).open(client, words[3], words.length > 4 ? words[4] : ""));
                return "";
            case "session":
                ZooKeeper zk = clients.get(name).getZookeeperClient().getZooKeeper();
                return Long.toUnsignedString(zk.getSessionId(), 16) + " "
                        + HexFormat.of().formatHex(zk.getSessionPasswd());
            case "end":
                clients.get(name).close();
                return "";
            default:
                return recipes.get(name).use(verb, words.length > 2 ? words[2] : "");
        }
    }

    private CuratorFramework connect() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(servers, 30_000, 10_000, new RetryForever(100));
        client.start();
        if (!client.blockUntilConnected(PATIENCE, TimeUnit.SECONDS)) {
            throw new TimeoutException("no connection");
        }
        return client;
    }

    static IllegalArgumentException unknown(String verb) {
        return new IllegalArgumentException("unknown verb " + verb);
    }
}
