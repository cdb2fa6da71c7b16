"""A pytest plugin: kazoo's tests use a server that runs already, in place of a cluster that they start themselves.

DOORS has the addresses, all of the same server, and GATEKEEPER where to ask for one to be shut and opened again. The
outcome of each test goes into the file OUTCOMES, a line each. A test that takes longer than LIMIT seconds fails.
"""
import os
import signal
import sys
import unittest.mock
import urllib.request

import kazoo.testing.harness
import pytest

sys.modules.setdefault("mock", unittest.mock)  # some tests want the package of that name


class Door:
    """One address of the server. It may be shut, as if the server had stopped and kept its data."""

    def __init__(self, number, address):
        self.number, self.address = number, address
        self.client_port = int(address.split(":")[1])
        self.running = True

    def run(self):
        self._ask("open")
        self.running = True

    def stop(self):
        self._ask("shut")
        self.running = False

    def _ask(self, what):
        urllib.request.urlopen("http://%s/%s/%d" % (os.environ["GATEKEEPER"], what, self.number), timeout=10).close()


class House(list):
    """In place of kazoo's ZookeeperCluster."""

    def start(self):
        for door in self:
            door.run()

    def stop(self):
        for door in self:
            door.stop()


HOUSE = House(Door(i, a) for i, a in enumerate(os.environ["DOORS"].split(",")))
kazoo.testing.harness.get_global_cluster = lambda: HOUSE


def too_long(*_):
    raise TimeoutError("the test took too long")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(int(os.environ["LIMIT"]))
    yield
    signal.alarm(0)
    HOUSE.start()


def pytest_runtest_logreport(report):
    """A test has three reports. The worst one counts, and the reader takes the last line that is not "passed"."""
    if report.when == "call" or report.outcome != "passed":
        with open(os.environ["OUTCOMES"], "a") as f:
            f.write("%s %s\n" % (report.outcome, report.nodeid))
