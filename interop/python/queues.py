"""Queue and LockingQueue."""
from world import PATIENCE


def queue(w):
    producer, consumer = w.client().Queue(w.path + "/queue"), w.client().Queue(w.path + "/queue")
    empty = consumer.get()
    producer.put(b"late", 200)
    producer.put(b"first")
    producer.put(b"second")
    producer.put(b"urgent", 1)
    size = len(consumer)
    return "%s, %d: %s" % (empty, size, [consumer.get().decode() for _ in range(4)])


def locking_queue(w):
    """An item is one consumer's until it is consumed or given back."""
    one, two = [w.client().LockingQueue(w.path + "/queue") for _ in range(2)]
    waiting = w.background(one.get, PATIENCE)
    two.put_all([b"1", b"2"])
    first = waiting.result(timeout=PATIENCE)
    locked = one.holds_lock()
    second = two.get(PATIENCE)
    given_back = two.release()
    again = two.get(PATIENCE)
    consumed = one.consume(), two.consume()
    nothing = one.get(timeout=0.05)
    return "%s locked %s, %s given back %s, %s consumed %s, then %s, left %d" % (
        first.decode(), locked, second.decode(), given_back, again.decode(), consumed, nothing, len(one))


def one_winner(w):
    """Three takers, six items, nobody gets another's."""
    queues = [w.client().LockingQueue(w.path + "/queue") for _ in range(3)]
    queues[0].put_all([b"%d" % i for i in range(6)])
    taken = []

    def take(i):
        for _ in range(2):
            taken.append(queues[i].get(PATIENCE).decode())
            queues[i].consume()

    w.together(3, take)
    return "%s" % sorted(taken)


SCENARIOS = {"queue": queue, "locking-queue": locking_queue, "locking-queue-winners": one_winner}
