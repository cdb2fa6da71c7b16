import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;

/** LeaderSelector and LeaderLatch. */
final class Elections {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("leader-selector", Elections::selector);
        scenarios.put("leader-latch", Elections::latch);
    }

    /** Each of three leads at least twice, and one at a time. */
    static String selector(World w) throws Exception {
        Section section = new Section();
        Map<String, Integer> terms = new ConcurrentHashMap<>();
        for (String name : List.of("a", "b", "c")) {
            LeaderSelector selector = w.closing(
                    new LeaderSelector(w.client(), w.path + "/leader", new LeaderSelectorListenerAdapter() {
                        @Override
                        public void takeLeadership(CuratorFramework client) throws Exception {
                            section.visit();
                            terms.merge(name, 1, Integer::sum);
                        }
                    }));
            selector.setId(name);
            selector.autoRequeue();
            selector.start();
        }
        World.until("everybody leads twice",
                () -> terms.size() == 3 && terms.values().stream().allMatch(n -> n >= 2));
        return "candidates " + terms.size() + ", leaders at a time " + section.most();
    }

    /** Leadership passes on in the order of arrival. */
    static String latch(World w) throws Exception {
        List<LeaderLatch> latches = new ArrayList<>();
        for (String name : List.of("a", "b", "c")) {
            LeaderLatch latch = new LeaderLatch(w.client(), w.path + "/leader", name);
            latch.start();
            latches.add(latch);
            World.until("it is in line", () -> latch.getParticipants().size() == latches.size());
        }
        List<String> leaders = new ArrayList<>();
        for (LeaderLatch latch : latches) {
            if (!latch.await(World.PATIENCE, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no leader");
            }
            long leading = latches.stream().filter(LeaderLatch::hasLeadership).count();
            leaders.add(latch.getLeader().getId() + leading);
            latch.close();
        }
        return String.join(" ", leaders);
    }
}
