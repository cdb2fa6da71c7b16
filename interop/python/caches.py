"""ChildrenWatch, DataWatch and TreeCache."""
from kazoo.recipe.cache import TreeCache
from kazoo.recipe.watchers import PatientChildrenWatch

from world import Events, until


def data_watch(w):
    client, other = w.client(), w.client()
    events = Events()

    @client.DataWatch(w.path)
    def changed(data, stat, event):
        events.put("%s %s" % (event and event.type, data and data.decode()))

    heard = [events.take()]
    for change in (
        lambda: other.create(w.path, b"1"),
        lambda: other.set(w.path, b"2"),
        lambda: other.delete(w.path),
        lambda: other.create(w.path, b"3"),
    ):
        change()
        heard.append(events.take())
    return ", ".join(heard)


def children_watch(w):
    """It ends when its function says so."""
    client, other = w.client(), w.client()
    other.create(w.path)
    events = Events()

    @client.ChildrenWatch(w.path)
    def changed(children):
        events.put(" ".join(sorted(children)) or "none")
        return "c" not in children

    heard = [events.take()]
    for name in "abc":
        other.create(w.path + "/" + name)
        heard.append(events.take())
    other.delete(w.path + "/a")
    client.sync(w.path)
    return ", ".join(heard) + ("" if events.empty() else " and more")


def tree_cache(w):
    client, other = w.client(), w.client()
    other.create(w.path + "/here/old", b"0", makepath=True)
    events = Events()
    cache = TreeCache(client, w.path + "/here")

    def heard(event):
        data = event.event_data
        events.put("%d" % event.event_type if data is None else "%d %s=%s" % (
            event.event_type, data.path[len(w.path) + 1:], data.data.decode()))

    cache.listen(heard)
    cache.start()
    all_heard = [events.take() for _ in range(3)]
    for change in (
        lambda: other.create(w.path + "/here/a", b"1"),
        lambda: other.set(w.path + "/here/a", b"2"),
        lambda: other.create(w.path + "/here/a/b", b"3"),
        lambda: other.delete(w.path + "/here/a/b"),
        lambda: other.delete(w.path + "/here/a"),
    ):
        change()
        all_heard.append(events.take())
    names = sorted(cache.get_children(w.path + "/here"))
    cache.close()
    return "%s, children %s" % (", ".join(all_heard), names)


def patient_children(w):
    """It waits until the children have been the same for a while."""
    client = w.client()
    for name in "ab":
        client.create(w.path + "/" + name, makepath=True)
    children, changed = PatientChildrenWatch(client, w.path, time_boundary=0.1).start().get(timeout=20)
    early = changed.ready()
    client.create(w.path + "/c")
    until("it has changed", changed.ready)
    return "%s, early %s" % (sorted(children), early)


SCENARIOS = {
    "data-watch": data_watch,
    "children-watch": children_watch,
    "tree-cache": tree_cache,
    "patient-children": patient_children,
}
