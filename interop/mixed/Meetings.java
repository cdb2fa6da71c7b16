import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.nodes.GroupMember;

/** Barriers and groups. */
final class Meetings {
    static void addTo(Map<String, Half.Kind> kinds) {
        kinds.put("barrier", Meetings::barrier);
        kinds.put("double-barrier", Meetings::doubleBarrier);
        kinds.put("group", Meetings::group);
    }

    private static Half.Recipe barrier(CuratorFramework client, String path, String argument) {
        DistributedBarrier barrier = new DistributedBarrier(client, path);
        return (verb, words) -> {
            switch (verb) {
                case "close":
                    barrier.setBarrier();
                    return "";
                case "open":
                    barrier.removeBarrier();
                    return "";
                case "try":
                    return "" + barrier.waitOnBarrier(Half.limit(words), TimeUnit.MILLISECONDS);
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe doubleBarrier(CuratorFramework client, String path, String parties) {
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path, Integer.parseInt(parties));
        return (verb, words) -> {
            switch (verb) {
                case "try":
                    return "" + barrier.enter(Half.limit(words), TimeUnit.MILLISECONDS);
                case "leave":
                    return "" + barrier.leave(Half.MOMENT, TimeUnit.MILLISECONDS);
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe group(CuratorFramework client, String path, String argument) {
        GroupMember member = new GroupMember(client, path, "java");
        return (verb, words) -> {
            switch (verb) {
                case "enter":
                    member.start(); // which only begins to
                    while (client.checkExists().forPath(path + "/java") == null) {
                        Thread.sleep(5);
                    }
                    return "";
                case "list":
                    return String.join(",", new TreeSet<>(member.getCurrentMembers().keySet()));
                case "leave":
                    member.close();
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }
}
