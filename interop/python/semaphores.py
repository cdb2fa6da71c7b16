"""Semaphore."""
from world import PATIENCE, Section, error


def semaphore(w):
    """Six threads of three clients share two leases."""
    clients = [w.client() for _ in range(3)]
    path = w.path + "/semaphore"
    section = Section()

    def contend(i):
        for _ in range(4):
            with clients[i % 3].Semaphore(path, max_leases=2):
                section.visit()

    w.together(6, contend)
    one, two, three = [c.Semaphore(path, name, max_leases=2) for c, name in zip(clients, "abc")]
    one.acquire()
    two.acquire()
    third = three.acquire(blocking=False)
    late = error(three.acquire, timeout=0.05)
    holders = sorted(three.lease_holders())
    other = error(clients[0].Semaphore(path, max_leases=3).acquire)
    one.release()
    next_one = three.acquire(timeout=PATIENCE)
    two.release()
    three.release()
    return "crowded %s, third %s, %s, holders %s, %s, next %s" % (
        section.most > 2, third, late, holders, other, next_one)


SCENARIOS = {"semaphore": semaphore}
