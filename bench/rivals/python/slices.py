"""What a slice asks for, what it measures, and the servers' own count of what they receive."""
import re
import socket
import threading
import time

from kazoo.client import KazooClient

UNKNOWN = -1  # stands for what the servers do not tell
SENT = 2000  # so many latencies are sent


class Slice:
    """What one slice asks for, and the sessions that work for it."""

    def __init__(self, line):
        # scenario, clients, seconds, path, servers, session timeout (ms), permits
        words = line.split()
        self.scenario = words[0]
        self.clients = int(words[1])
        self.seconds = float(words[2])
        self.path = words[3]
        self.servers = words[4]
        self.timeout = int(words[5]) / 1000
        self.permits = int(words[6])
        self.sessions = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for c in self.sessions:
            c.stop()
            c.close()

    def open(self, n):
        """Opens n sessions at once."""
        opened = [KazooClient(hosts=self.servers, timeout=self.timeout) for _ in range(n)]
        self.sessions += opened
        waits = [c.start_async() for c in opened]
        for c, connected in zip(opened, waits):
            connected.wait(timeout=30)
            if not c.connected:
                raise RuntimeError("no session within 30 s")
        return opened


class Tally:
    """What a slice has measured."""

    def __init__(self):
        self.latencies = []
        self.elapsed = self.queueing = self.processor = 0.0
        self.requests = self.queueing_requests = UNKNOWN

    def begin(self):
        """Begins to count the processor time of this process."""
        self.processor = -time.process_time()

    def measured(self, elapsed, requests):
        self.processor += time.process_time()
        self.elapsed, self.requests = elapsed, requests

    def result(self):
        ordered = sorted(self.latencies)  # what is sent has the percentiles of the whole
        n = min(len(ordered), SENT)
        sent = [ordered[(2 * i + 1) * len(ordered) // (2 * n)] for i in range(n)]
        return {
            "ops": len(ordered),
            "elapsed_s": self.elapsed,
            "requests": self.requests,
            "cpu_s": self.processor,
            "queueing_s": self.queueing,
            "queueing_requests": self.queueing_requests,
            "latencies_us": [round(s * 1e6, 1) for s in sent],
        }


asked = 0  # so often, by this program; the servers count these questions, too


def received(servers):
    """What all servers together have received, without the questions of this function."""
    global asked
    total = 0
    for server in servers.split(","):
        try:
            found = re.search(r"zk_packets_received\s+(\d+)", ask(server))
        except OSError:
            found = None
        if found is None:
            return UNKNOWN
        asked += 1
        total += int(found.group(1))
    return total - asked


def between(before, after):
    return UNKNOWN if UNKNOWN in (before, after) else after - before


def ask(server):
    host, port = server.rsplit(":", 1)
    with socket.create_connection((host, int(port)), 5) as s:
        s.sendall(b"mntr")
        text = b""
        while True:
            more = s.recv(1 << 16)
            if not more:
                return text.decode()
            text += more


class Threads:
    """Threads of which the first error is kept."""

    GRACE = 15  # seconds that the last operations may take

    def __init__(self):
        self.error = None
        self.all = []

    def start(self, task, *args):
        def run():
            try:
                task(*args)
            except Exception as e:
                self.error = self.error or e

        self.all.append(threading.Thread(target=run, daemon=True))
        self.all[-1].start()

    def join(self):
        end = time.monotonic() + self.GRACE
        for t in self.all:
            while t.is_alive() and self.error is None and time.monotonic() < end:
                t.join(0.05)
        if self.error is not None:
            raise self.error
        stuck = sum(t.is_alive() for t in self.all)
        if stuck:
            raise RuntimeError("%d of %d threads hang" % (stuck, len(self.all)))
