"""Runs kazoo's recipes on the servers that it is told, several at a time.

It prints "scenarios" and their names, then reads lines: "run ID SCENARIO SERVERS" starts one, and
"done ID" tells it that what it has asked for is done. It answers "ID result TEXT", or "ID failed
REASON", and asks in between, "ID expire SESSION PASSWORD" for instance: see world.py. It ends with its
input.
"""
import logging
import os
import sys
import threading
import traceback

import barriers
import caches
import counters
import elections
import locks
import losses
import operations
import queues
import semaphores
from world import World, say

SCENARIOS = {}
for module in (barriers, caches, counters, elections, locks, losses, operations, queues, semaphores):
    SCENARIOS.update(module.SCENARIOS)

# More would only make the machine busy; what they do is mostly waiting for one another.
turn = threading.Semaphore(16)


def play(world, scenario):
    with turn:
        try:
            with world:
                result = scenario(world)
            say(world.id, "result", result)
        except BaseException as e:
            traceback.print_exc()
            say(world.id, "failed", repr(e).replace("\n", " "))


def main():
    logging.basicConfig(level=logging.CRITICAL)
    say("scenarios", *sorted(SCENARIOS))
    running = {}
    for line in sys.stdin:
        verb, run, *rest = line.split()
        if verb == "done":
            running[run].answered()
            continue
        name, servers = rest
        running[run] = World(run, name, servers)
        threading.Thread(target=play, args=(running[run], SCENARIOS[name]), daemon=True).start()
    os._exit(0)  # whatever is still running


main()
