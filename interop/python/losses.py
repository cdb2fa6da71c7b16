"""How the recipes recover from lost connections, lost sessions and a server that comes back."""
from world import PATIENCE, Events, until


def states(client):
    events = Events()
    client.add_listener(lambda state: events.put(state))
    return events


def expired_holder(w):
    """The lock goes to the next when the holder's session has expired, and the holder is told."""
    holder, other = w.client(), w.client()
    heard = states(holder)
    mine, waiting = holder.Lock(w.path + "/lock", "mine"), other.Lock(w.path + "/lock", "other")
    mine.acquire()
    taken = w.background(waiting.acquire, True, PATIENCE)
    until("it waits", lambda: len(mine.contenders()) == 2)
    w.expire(holder)
    result = taken.result(timeout=PATIENCE)
    waiting.release()
    return "taken %s, %s" % (result, heard.take_loss())


def expired_waiter(w):
    """Whoever waits for a lock waits on in a new session."""
    holder, other = w.client(), w.client()
    mine, waiting = holder.Lock(w.path + "/lock", "mine"), other.Lock(w.path + "/lock", "other")
    mine.acquire()
    taken = w.background(waiting.acquire, True, PATIENCE)
    until("it waits", lambda: len(mine.contenders()) == 2)
    session = other.client_id[0]
    w.expire(other)
    until("it waits again", lambda: other.client_id and other.client_id[0] != session and len(mine.contenders()) == 2)
    early = taken.done()
    mine.release()
    result = taken.result(timeout=PATIENCE)
    waiting.release()
    return "early %s, taken %s" % (early, result)


def cut_holder(w):
    """A lock outlives the connection that it was taken on."""
    holder, other = w.client(), w.client()
    heard = states(holder)
    mine, waiting = holder.Lock(w.path + "/lock", "mine"), other.Lock(w.path + "/lock", "other")
    mine.acquire()
    w.disconnect(holder)
    seen = heard.take_all(2)
    early = waiting.acquire(blocking=False)
    mine.release()
    taken = waiting.acquire(timeout=PATIENCE)
    waiting.release()
    return "%s, early %s, taken %s" % (seen, early, taken)


def cut_waiter(w):
    """A waiter keeps its place over a lost connection."""
    holder, other = w.client(), w.client()
    mine, waiting = holder.Lock(w.path + "/lock", "mine"), other.Lock(w.path + "/lock", "other")
    mine.acquire()
    taken = w.background(waiting.acquire, True, PATIENCE)
    until("it waits", lambda: len(mine.contenders()) == 2)
    before = sorted(holder.get_children(w.path + "/lock"))
    heard = states(other)
    w.disconnect(other)
    seen = heard.take_all(2)
    same = sorted(holder.get_children(w.path + "/lock")) == before
    mine.release()
    result = taken.result(timeout=PATIENCE)
    waiting.release()
    return "%s, same place %s, taken %s" % (seen, same, result)


def cut_watches(w):
    """What happened while the connection was down is heard."""
    cut, other = w.client(), w.client()
    other.create(w.path, b"0")
    data, children = Events(), Events()
    cut.DataWatch(w.path, lambda value, stat: data.put(value))
    cut.ChildrenWatch(w.path, lambda names: children.put(sorted(names)))
    data.take(), children.take()
    heard = states(cut)
    w.disconnect(cut)
    other.set(w.path, b"1")
    other.create(w.path + "/a")
    seen = heard.take_all(2)
    until("the data is heard of", lambda: data.take() == b"1")
    until("the child is heard of", lambda: children.take() == ["a"])
    other.set(w.path, b"2")
    until("the watch lives", lambda: data.take() == b"2")
    return "%s" % seen


def expired_watches(w):
    """Watches are set again in the new session."""
    expired, other = w.client(), w.client()
    other.create(w.path, b"0")
    data = Events()
    expired.DataWatch(w.path, lambda value, stat: data.put(value))
    data.take()
    heard = states(expired)
    w.expire(expired)
    seen = heard.take_loss()
    other.set(w.path, b"1")
    until("the watch lives", lambda: data.take() == b"1")
    return "%s" % seen


def expired_semaphore(w):
    """A lease of a session that has expired goes to who waits."""
    holder, other = w.client(), w.client()
    mine, waiting = holder.Semaphore(w.path + "/s", "mine"), other.Semaphore(w.path + "/s", "other")
    mine.acquire()
    taken = w.background(waiting.acquire, True, PATIENCE)
    w.expire(holder)
    result = taken.result(timeout=PATIENCE)
    holders = waiting.lease_holders()
    waiting.release()
    return "taken %s, holders %s" % (result, holders)


def restart(w):
    """Everything goes on after the server was away, in the same sessions."""
    one, two = w.client(), w.client()
    mine, waiting = one.Lock(w.path + "/lock", "mine"), two.Lock(w.path + "/lock", "other")
    mine.acquire()
    taken = w.background(waiting.acquire, True, PATIENCE)
    until("it waits", lambda: len(mine.contenders()) == 2)
    one.create(w.path + "/data", b"0")
    data = Events()
    two.DataWatch(w.path + "/data", lambda value, stat: data.put(value))
    before = one.client_id[0], two.client_id[0]
    heard = states(one), states(two)
    w.restart()
    seen = [h.take_all(2) for h in heard]
    one.set(w.path + "/data", b"1")
    until("the watch lives", lambda: data.take() == b"1")
    early = taken.done()
    mine.release()
    result = taken.result(timeout=PATIENCE)
    waiting.release()
    same = before == (one.client_id[0], two.client_id[0])
    return "%s, early %s, taken %s, same sessions %s" % (seen, early, result, same)


SCENARIOS = {
    "expired-holder": expired_holder,
    "expired-waiter": expired_waiter,
    "cut-holder": cut_holder,
    "cut-waiter": cut_waiter,
    "cut-watches": cut_watches,
    "expired-watches": expired_watches,
    "expired-semaphore": expired_semaphore,
    "restart": restart,
}
