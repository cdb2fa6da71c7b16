import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.CachedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.CachedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicNumber;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicValue;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;

/** Numbers and values: "read", "write VALUE". Queues: "write ELEMENT", "read" takes one, or returns none. */
final class Records {
    static void addTo(Map<String, Half.Kind> kinds) {
        kinds.put("shared-count", Records::sharedCount);
        kinds.put("shared-value", Records::sharedValue);
        kinds.put("atomic-value", Records::atomicValue);
        kinds.put("atomic-integer", (client, path, x) ->
                number(new DistributedAtomicInteger(client, path, new RetryNTimes(10, 10))));
        kinds.put("atomic-long", (client, path, x) ->
                number(new DistributedAtomicLong(client, path, new RetryNTimes(10, 10))));
        kinds.put("cached-integer", (client, path, x) -> {
            CachedAtomicInteger n = new CachedAtomicInteger(
                    new DistributedAtomicInteger(client, path, new RetryNTimes(10, 10)), 10);
            return (verb, argument) -> outcome(n.next());
        });
        kinds.put("cached-long", (client, path, x) -> {
            CachedAtomicLong n = new CachedAtomicLong(
                    new DistributedAtomicLong(client, path, new RetryNTimes(10, 10)), 10);
            return (verb, argument) -> outcome(n.next());
        });
        kinds.put("queue", Records::queue);
        kinds.put("id-queue", Records::idQueue);
        kinds.put("priority-queue", Records::priorityQueue);
        kinds.put("delay-queue", Records::delayQueue);
        kinds.put("simple-queue", Records::simpleQueue);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "none" : new String(bytes, StandardCharsets.UTF_8);
    }

    private static <T> String outcome(AtomicValue<T> v) {
        return v.succeeded() ? "" + v.postValue() : "refused";
    }

    private static Half.Recipe sharedCount(CuratorFramework client, String path, String seed) throws Exception {
        SharedCount count = new SharedCount(client, path, 10);
        return (verb, argument) -> {
            switch (verb) {
                case "enter":
                    count.start();
                    return "";
                case "read":
                    return "" + count.getCount();
                case "write":
                    count.setCount(Integer.parseInt(argument));
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe sharedValue(CuratorFramework client, String path, String seed) throws Exception {
        SharedValue value = new SharedValue(client, path, bytes("seed"));
        return (verb, argument) -> {
            switch (verb) {
                case "enter":
                    value.start();
                    return "";
                case "read":
                    return text(value.getValue());
                case "write":
                    value.setValue(bytes(argument));
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe atomicValue(CuratorFramework client, String path, String seed) {
        DistributedAtomicValue value = new DistributedAtomicValue(client, path, new RetryNTimes(10, 10));
        return (verb, argument) -> {
            switch (verb) {
                case "read":
                    return text(value.get().postValue());
                case "write":
                    value.forceSet(bytes(argument));
                    return "";
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static <T> Half.Recipe number(DistributedAtomicNumber<T> number) {
        return (verb, argument) -> {
            switch (verb) {
                case "read":
                    return outcome(number.get());
                case "add":
                    return outcome(number.increment());
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    /** What consumers of a queue have taken. */
    private static final class Taken implements QueueConsumer<String>, QueueSerializer<String> {
        final BlockingQueue<String> elements = new LinkedBlockingQueue<>();

        @Override
        public void consumeMessage(String element) {
            elements.add(element);
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {}

        @Override
        public byte[] serialize(String element) {
            return bytes(element);
        }

        @Override
        public String deserialize(byte[] bytes) {
            return text(bytes);
        }

        String next() throws InterruptedException {
            String element = elements.poll(Half.MOMENT, TimeUnit.MILLISECONDS);
            return element == null ? "none" : element;
        }
    }

    /** One that only writes, unless the argument is "takes". */
    private static QueueBuilder<String> builder(CuratorFramework client, String path, String argument, Taken taken) {
        return QueueBuilder.builder(client, argument.equals("takes") ? taken : null, taken, path);
    }

    private static Half.Recipe queue(CuratorFramework client, String path, String argument) throws Exception {
        Taken taken = new Taken();
        DistributedQueue<String> queue = builder(client, path, argument, taken).buildQueue();
        queue.start();
        return put(taken, queue::put);
    }

    private static Half.Recipe idQueue(CuratorFramework client, String path, String argument) throws Exception {
        Taken taken = new Taken();
        DistributedIdQueue<String> queue = builder(client, path, argument, taken).buildIdQueue();
        queue.start();
        return put(taken, element -> queue.put(element, "id"));
    }

    private static Half.Recipe priorityQueue(CuratorFramework client, String path, String argument) throws Exception {
        Taken taken = new Taken();
        DistributedPriorityQueue<String> queue = builder(client, path, argument, taken).buildPriorityQueue(0);
        queue.start();
        return put(taken, element -> queue.put(element, 3));
    }

    private static Half.Recipe delayQueue(CuratorFramework client, String path, String argument) throws Exception {
        Taken taken = new Taken();
        DistributedDelayQueue<String> queue = builder(client, path, argument, taken).buildDelayQueue();
        queue.start();
        return put(taken, element -> queue.put(element, System.currentTimeMillis()));
    }

    private interface Put {
        void put(String element) throws Exception;
    }

    private static Half.Recipe put(Taken taken, Put put) {
        return (verb, element) -> {
            switch (verb) {
                case "write":
                    put.put(element);
                    return "";
                case "read":
                    return taken.next();
                default:
                    throw Half.unknown(verb);
            }
        };
    }

    private static Half.Recipe simpleQueue(CuratorFramework client, String path, String argument) {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client, path);
        return (verb, element) -> {
            switch (verb) {
                case "write":
                    queue.offer(bytes(element));
                    return "";
                case "read":
                    return text(queue.poll(Half.MOMENT, TimeUnit.MILLISECONDS));
                default:
                    throw Half.unknown(verb);
            }
        };
    }
}
