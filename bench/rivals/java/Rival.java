import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * Measures Apache Curator's recipes. Each line of the input asks for one slice; each is answered with one line of JSON.
 * The program stays alive between the slices, so that its compiled code stays, too. It ends with its input.
 */
public final class Rival {
    private Rival() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line));
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String line) {
        Slice slice = null;
        try {
            slice = new Slice(line);
            Tally tally = new Tally();
            Scenarios.run(slice, tally);
            return tally.json();
        } catch (Throwable e) {
            return Tally.failure(e);
        } finally {
            if (slice != null) {
                slice.close();
            }
        }
    }
}
