import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Runs Curator's recipes on the servers that it is told, several at a time.
 *
 * It prints "scenarios" and their names, then reads lines: "run ID SCENARIO SERVERS" starts one, and
 * "done ID" tells it that what it has asked for is done. It answers "ID result TEXT", or "ID failed
 * REASON", and asks in between, "ID expire SESSION PASSWORD" for instance: see World. It ends with its input.
 */
public final class Recipes {
    /** What a scenario does, and returns as one line. */
    interface Scenario {
        String run(World world) throws Exception;
    }

    // More would only make the machine busy; what they do is mostly waiting for one another.
    private static final int AT_A_TIME = 16;

    private final Map<String, Scenario> scenarios = new TreeMap<>();
    private final Map<String, World> running = new TreeMap<>();

    private Recipes() {
        Locks.addTo(scenarios);
        Semaphores.addTo(scenarios);
        Barriers.addTo(scenarios);
        Counters.addTo(scenarios);
        Elections.addTo(scenarios);
        Caches.addTo(scenarios);
        Nodes.addTo(scenarios);
        Operations.addTo(scenarios);
        Watches.addTo(scenarios);
        Losses.addTo(scenarios);
    }

    public static void main(String[] args) throws Exception {
        new Recipes().serve(new BufferedReader(new InputStreamReader(System.in)));
        System.exit(0); // whatever is still running
    }

    private void serve(BufferedReader in) throws Exception {
        World.say("scenarios " + String.join(" ", scenarios.keySet()));
        ExecutorService threads = Executors.newFixedThreadPool(AT_A_TIME);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("done")) {
                running.get(words[1]).answered();
                continue;
            }
            World world = new World(words[1], words[2], words[3]);
            running.put(words[1], world);
            threads.submit(() -> run(world, scenarios.get(words[2])));
        }
    }

    private static void run(World world, Scenario scenario) {
        try {
            String result;
            try (world) {
                result = scenario.run(world);
            }
            World.say(world.id + " result " + result);
        } catch (Throwable e) {
            e.printStackTrace();
            World.say(world.id + " failed " + e.toString().replace('\n', ' '));
        }
    }
}
