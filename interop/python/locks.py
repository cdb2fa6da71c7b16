"""Lock, ReadLock and WriteLock."""
import threading

from world import PATIENCE, Section, error, until

ROUNDS = 8


def lock(w):
    """Two locks of each client contend."""
    clients = [w.client() for _ in range(3)]
    path = w.path + "/lock"
    section = Section()

    def contend(i):
        for _ in range(ROUNDS):
            with clients[i % 3].Lock(path, "number %d" % i):
                section.visit()

    w.together(6, contend)
    mine, other = clients[0].Lock(path, "mine"), clients[1].Lock(path, "other")
    mine.acquire()
    busy = not other.acquire(blocking=False)
    late = error(other.acquire, timeout=0.05)
    contenders = other.contenders()
    mine.release()
    free = other.acquire(timeout=PATIENCE)
    other.release()
    return "%s, busy %s, %s, contenders %s, free %s" % (section, busy, late, contenders, free)


def queue(w):
    """Contenders are served in the order in which they came, without one that gave up."""
    served = []
    path = w.path + "/lock"
    holder = w.client().Lock(path, "holder")
    holder.acquire()
    locks = [w.client().Lock(path, name) for name in ("a", "b", "c")]

    def wait(i):
        try:
            with locks[i]:
                served.append("abc"[i])
        except Exception as e:
            served.append("abc"[i] + " " + type(e).__name__)

    waiting = []
    for i in range(3):
        waiting.append(w.background(wait, i))
        until("it is in line", lambda: len(holder.contenders()) == i + 2)
    line = holder.contenders()
    locks[1].cancel()
    waiting[1].result(timeout=PATIENCE)
    holder.release()
    for one in waiting:
        one.result(timeout=PATIENCE)
    return "%s, served %s" % (line, served)


def read_write(w):
    """Writers are alone, two readers are inside together."""
    clients = [w.client() for _ in range(2)]
    path = w.path + "/lock"
    section = Section()

    def write(i):
        for _ in range(ROUNDS):
            with clients[i].WriteLock(path):
                section.visit()

    w.together(2, write)
    both = threading.Barrier(3)

    def read(i):
        with clients[i].ReadLock(path):
            both.wait(PATIENCE)
            both.wait(PATIENCE)

    readers = [w.background(read, i) for i in range(2)]
    both.wait(PATIENCE)
    writer = clients[0].WriteLock(path)
    excluded = error(writer.acquire, timeout=0.05)
    both.wait(PATIENCE)
    for reader in readers:
        reader.result(timeout=PATIENCE)
    writer = clients[0].WriteLock(path)
    alone = writer.acquire(timeout=PATIENCE)
    shut_out = error(clients[1].ReadLock(path).acquire, timeout=0.05)
    writer.release()
    return "%s, excluded %s, alone %s, shut out %s" % (section, excluded, alone, shut_out)


SCENARIOS = {"lock": lock, "lock-queue": queue, "read-write": read_write}
