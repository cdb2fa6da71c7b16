import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The servers' own count of what they have received. */
final class Counters {
    /** Stands for what the servers do not tell. */
    static final long UNKNOWN = -1;

    private static final Pattern RECEIVED = Pattern.compile("zk_packets_received\\s+(\\d+)");

    private static long asked; // so often, by this program; the servers count these questions, too

    private Counters() {}

    /** Returns what all servers together have received, without the questions of this method. */
    static synchronized long received(String servers) {
        long total = 0;
        for (String server : servers.split(",")) {
            try {
                Matcher m = RECEIVED.matcher(ask(server));
                if (!m.find()) {
                    return UNKNOWN;
                }
                total += Long.parseLong(m.group(1));
                asked++;
            } catch (IOException e) {
                return UNKNOWN;
            }
        }
        return total - asked;
    }

    /** Returns what was received between two calls of received. */
    static long between(long before, long after) {
        return before == UNKNOWN || after == UNKNOWN ? UNKNOWN : after - before;
    }

    private static String ask(String server) throws IOException {
        int colon = server.lastIndexOf(':');
        try (Socket socket = new Socket(server.substring(0, colon), Integer.parseInt(server.substring(colon + 1)))) {
            socket.setSoTimeout(5000);
            socket.getOutputStream().write("mntr".getBytes(StandardCharsets.US_ASCII));
            socket.getOutputStream().flush();
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        }
    }
}
