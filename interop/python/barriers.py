"""Barrier and DoubleBarrier."""
import threading

from world import PATIENCE


def barrier(w):
    path = w.path + "/barrier"
    client = w.client()
    free = client.Barrier(path).wait(0.05)
    mine = client.Barrier(path)
    mine.create()
    early = bool(w.client().Barrier(path).wait(0.05))
    through = [w.background(w.client().Barrier(path).wait, PATIENCE) for _ in range(3)]
    removed = mine.remove()
    again = mine.remove()
    passed = sum(bool(one.result(timeout=PATIENCE)) for one in through)
    return "free %s, early %s, removed %s %s, passed %d" % (free, early, removed, again, passed)


def double_barrier(w):
    """Nobody is inside before all are, nobody is out before all leave."""
    parties = 4
    lock = threading.Lock()
    count = {"entering": 0, "leaving": 0, "wrong": 0}

    def step(what):
        with lock:
            count[what] += 1

    def look(what):
        with lock:
            if count[what] != parties:
                count["wrong"] += 1

    # Nobody leaves before every enter has returned. In kazoo, a party that looks for "ready" only after another one has
    # left, and so has deleted it and its own node, waits for ever: on every server.
    entered = threading.Barrier(parties)

    def take_part(_):
        mine = w.client().DoubleBarrier(w.path + "/barrier", parties)
        step("entering")
        mine.enter()
        look("entering")
        entered.wait(PATIENCE)
        step("leaving")
        mine.leave()
        look("leaving")

    w.together(parties, take_part)
    return "entered %(entering)d, left %(leaving)d, wrong %(wrong)d" % count


SCENARIOS = {"barrier": barrier, "double-barrier": double_barrier}
