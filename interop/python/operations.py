"""The client's own operations."""
from kazoo.security import make_digest_acl

from world import error


def transaction(w):
    client = w.client()
    client.create(w.path)
    t = client.transaction()
    t.create(w.path + "/a", b"1")
    t.set_data(w.path + "/a", b"2")
    t.check(w.path + "/a", 1)
    t.create(w.path + "/s-", sequence=True)
    t.delete(w.path + "/a", 1)
    made = t.commit()
    t = client.transaction()
    t.create(w.path + "/b")
    t.check(w.path + "/none", 0)
    t.delete(w.path)
    failed = [type(r).__name__ for r in t.commit()]
    sequence = made[3][len(w.path):]
    return "%s, version %d, %s, %s" % ([made[0] == w.path + "/a", made[2], made[4]], made[1].version, sequence, failed)


def acl(w):
    mine = [make_digest_acl("ann", "secret", all=True)]
    owner = w.client(default_acl=mine, auth_data=[("digest", "ann:secret")])
    owner.create(w.path, b"x")
    stranger = w.client()
    refused = [
        error(stranger.get, w.path),
        error(stranger.set, w.path, b"y"),
        error(stranger.get_children, w.path),
        error(stranger.create, w.path + "/a"),
        error(stranger.exists, w.path),
    ]
    acls = owner.get_acls(w.path)[0][0]
    stranger.add_auth("digest", "ann:secret")
    then = error(stranger.get, w.path)
    owner.delete(w.path)
    return "%s, %s %s %s, then %s" % (
        refused, acls.id.scheme, acls.id.id == mine[0].id.id, acls.acl_list, then)


def nodes(w):
    client = w.client()
    made, stat = client.create(w.path + "/a/b-", b"x", sequence=True, makepath=True, include_data=True)
    children, below = client.get_children(w.path + "/a", include_data=True)
    found = [
        error(client.set, w.path + "/a", b"y", version=5),
        error(client.delete, w.path + "/a"),
        error(client.create, w.path + "/a"),
        error(client.get, w.path + "/none"),
    ]
    client.create(w.path + "/e", ephemeral=True)
    found.append(error(client.create, w.path + "/e/child"))
    mine = client.exists(w.path + "/e").owner_session_id == client.client_id[0]
    before = below.children_count
    client.delete(w.path + "/a", recursive=True)
    return "%s version %d, %s, %d, %s, mine %s, gone %s" % (
        made[len(w.path):], stat.version, children, before, found, mine, client.exists(w.path + "/a") is None)


def administration(w):
    """Four-letter words."""
    client = w.client()
    ruok = client.command(b"ruok")
    version = client.server_version()
    return "%s, %s" % (ruok, ".".join(map(str, version)))


SCENARIOS = {"transaction": transaction, "acl": acl, "nodes": nodes, "administration": administration}
