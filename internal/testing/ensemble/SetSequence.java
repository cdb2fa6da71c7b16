import java.io.File;
import java.io.IOException;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.zookeeper.server.DataNode;
import org.apache.zookeeper.server.DataTree;
import org.apache.zookeeper.server.persistence.FileTxnSnapLog;

/**
 * Moves the counter from which a stopped server numbers the sequential children of a znode.
 *
 * <p>Arguments: PATH NEXT DATADIR... where NEXT is the number that the next child shall get. A new
 * snapshot at the last transaction replaces the state; sessions and ephemeral nodes stay as they are.
 * Run it with -Dzookeeper.digest.enabled=false: a snapshot that carries the digest of its tree would
 * carry the one from before the change.
 */
public final class SetSequence {

    private SetSequence() {
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            fail("usage: SetSequence PATH NEXT DATADIR...");
        }
        int next = Integer.parseInt(args[1]);
        for (int i = 2; i < args.length; i++) {
            try {
                patch(new File(args[i]), args[0], next);
            } catch (IOException e) {
                fail(args[i] + ": " + e.getMessage());
            }
        }
    }

    private static void patch(File dir, String path, int next) throws IOException {
        // Without this the store would start an empty database in a mistyped folder.
        if (!new File(dir, FileTxnSnapLog.version + FileTxnSnapLog.VERSION).isDirectory()) {
            throw new IOException("not the data of a server");
        }
        FileTxnSnapLog store = new FileTxnSnapLog(dir, dir);
        try {
            DataTree tree = new DataTree();
            ConcurrentHashMap<Long, Integer> sessions = new ConcurrentHashMap<>();
            store.restore(tree, sessions, (header, record, digest) -> { });
            DataNode node = tree.getNode(path);
            if (node == null) {
                throw new IOException("no node " + path);
            }
            synchronized (node) {
                node.stat.setCversion(next);
            }
            store.save(tree, sessions, true);
        } finally {
            store.close();
        }
    }

    private static void fail(String message) {
        System.err.println(message);
        System.exit(1);
    }
}
