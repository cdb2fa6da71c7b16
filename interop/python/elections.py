"""Election, Party and SetPartitioner."""
import threading

from world import PATIENCE, Section, until


def election(w):
    """Each of three leads, one at a time, in the order of arrival; one who gives up does not."""
    section = Section()
    led = []
    clients = [w.client() for _ in range(4)]
    elections = [c.Election(w.path + "/leader", name) for c, name in zip(clients, "abcd")]

    go = threading.Event()

    def lead(name):
        go.wait(PATIENCE)
        section.visit()
        led.append(name)

    running = []
    for i, candidate in enumerate(elections):
        running.append(w.background(candidate.run, lead, "abcd"[i]))
        until("it is in line", lambda: len(candidate.contenders()) == i + 1)
    elections[2].cancel()
    until("one has left the line", lambda: len(elections[0].contenders()) == 3)
    go.set()
    for one in running:
        one.result(timeout=PATIENCE)
    return "%s, led %s" % (section, led)


def party(w):
    clients = [w.client() for _ in range(3)]
    parties = [c.Party(w.path + "/party", name) for c, name in zip(clients, "abc")]
    for one in parties:
        one.join()
    before = sorted(parties[0])
    parties[1].leave()
    shallow = clients[2].ShallowParty(w.path + "/shallow", "x")
    shallow.join()
    clients[2].stop()
    left = sorted(parties[0])
    return "%s then %s, shallow %d" % (before, left, len(clients[0].ShallowParty(w.path + "/shallow", "y")))


def partitioner(w):
    """Two members divide three items, and one takes over when the other goes."""
    clients = [w.client() for _ in range(2)]
    items = ("1", "2", "3")
    members = [
        c.SetPartitioner(w.path + "/set", items, identifier=name, time_boundary=0.2)
        for c, name in zip(clients, "ab")
    ]

    def settle(wanted):
        def settled():
            for m in members:
                if m.release:
                    m.release_set()
                elif m.allocating:
                    m.wait_for_acquire(0.1)
            return all(m.acquired for m in members) and sum(len(list(m)) for m in members) == wanted

        until("all items are somebody's", settled)

    settle(3)
    divided = sorted(len(list(m)) for m in members)
    members.pop().finish()
    settle(3)
    taken = len(list(members[0]))
    members[0].finish()
    return "divided %s, taken %d" % (divided, taken)


SCENARIOS = {"election": election, "party": party, "partitioner": partitioner}
