import java.util.Collection;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** InterProcessSemaphoreV2. */
final class Semaphores {
    static void addTo(Map<String, Recipes.Scenario> scenarios) {
        scenarios.put("semaphore", Semaphores::fixed);
        scenarios.put("growing-semaphore", Semaphores::growing);
    }

    /** Six threads of three clients share two leases. */
    static String fixed(World w) throws Exception {
        InterProcessSemaphoreV2[] semaphores = new InterProcessSemaphoreV2[3];
        for (int i = 0; i < semaphores.length; i++) {
            semaphores[i] = new InterProcessSemaphoreV2(w.client(), w.path + "/semaphore", 2);
        }
        Section section = new Section();
        w.together(6, i -> {
            for (int round = 0; round < 5; round++) {
                Lease lease = semaphores[i % 3].acquire();
                section.visit();
                semaphores[i % 3].returnLease(lease);
            }
        });
        boolean crowded = section.most() > 2;
        Collection<Lease> both = semaphores[0].acquire(2);
        boolean third = semaphores[1].acquire(50, TimeUnit.MILLISECONDS) != null;
        int nodes = semaphores[1].getParticipantNodes().size();
        semaphores[0].returnAll(both);
        Lease next = semaphores[1].acquire(World.PATIENCE, TimeUnit.SECONDS);
        boolean data = next.getData().length > 0;
        semaphores[1].returnLease(next);
        return "crowded " + crowded + ", third " + third + ", nodes " + nodes + ", data " + data;
    }

    /** A client waits until the limit is raised. */
    static String growing(World w) throws Exception {
        CuratorFramework client = w.client();
        SharedCount limit = new SharedCount(client, w.path + "/limit", 1);
        limit.start();
        try {
            InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, w.path + "/semaphore", limit);
            Lease first = semaphore.acquire(World.PATIENCE, TimeUnit.SECONDS);
            Future<Lease> second = w.background(() -> semaphore.acquire(World.PATIENCE, TimeUnit.SECONDS));
            World.until("two in line", () -> semaphore.getParticipantNodes().size() == 2);
            boolean early = second.isDone();
            limit.setCount(2);
            boolean granted = World.get(second) != null;
            semaphore.returnLease(first);
            semaphore.returnLease(second.get());
            return "early " + early + ", granted " + granted;
        } finally {
            limit.close();
        }
    }
}
