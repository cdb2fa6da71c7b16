"""Takes a kazoo lock again and again.

Arguments: SERVERS PATH KIND ROUNDS FILE. KIND lock uses kazoo's own node name, KIND lock-name is
told to use "-lock-", which Curator understands; both add one to the number in FILE, in two
steps. All are told to mind the nodes of others.
"""
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


# What exclusive nodes of other libraries are called.
OTHERS = ["-lock-", "-__WRIT__"]


class NamedLock(Lock):
    """kazoo's Lock with the node name of Curator."""

    _NODE_NAME = "-lock-"


def numbers(name):
    with open(name) as f:
        a, b = f.read().split()
    return int(a), int(b)


def write(name, a, b):
    # In one go: readers must never see half a line.
    with open(name, "r+") as f:
        f.write("%d %d\n" % (a, b))
        f.truncate()


def add(name):
    a, b = numbers(name)
    if a != b:
        raise SystemExit("another writer was inside")
    write(name, a, a + 1)
    time.sleep(0.001)
    write(name, a + 1, a + 1)


def main():
    servers, path, kind, rounds, name = sys.argv[1:]
    client = KazooClient(hosts=servers, timeout=30)
    client.start(timeout=120)
    make = {"lock": Lock, "lock-name": NamedLock}[kind]
    print("ready", flush=True)
    for _ in range(int(rounds)):
        lock = make(client, path, "python", extra_lock_patterns=OTHERS)
        if not lock.acquire(timeout=120):
            raise SystemExit("not acquired within 120 s")
        add(name)
        lock.release()
    client.stop()
    print("done")


main()
