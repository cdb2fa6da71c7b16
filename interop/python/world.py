"""What one scenario works with: a path of its own, clients, threads, and somebody who breaks connections."""
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from kazoo.client import KazooClient

# How long anything may take, in seconds.
PATIENCE = 60

_output = threading.Lock()


def say(*words):
    with _output:
        print(*words, flush=True)


class World:
    def __init__(self, run, name, servers):
        self.id = run
        self.path = "/kazoo-" + name
        self._servers = servers
        self._clients = []
        self._answers = threading.Semaphore(0)
        self._threads = ThreadPoolExecutor(max_workers=16)

    def client(self, **options):
        """Returns a new client, closed when the scenario ends."""
        # Left to itself it would pause longer each time, and its session might not outlive a slow restart.
        retry = {"max_tries": -1, "delay": 0.1, "backoff": 1}
        client = KazooClient(hosts=self._servers, timeout=30, connection_retry=retry, **options)
        self._clients.append(client)
        client.start(timeout=PATIENCE)
        return client

    def background(self, function, *args):
        return self._threads.submit(function, *args)

    def together(self, n, function):
        """Runs function(i) n times, all at the same time, and waits for all."""
        for one in [self.background(function, i) for i in range(n)]:
            one.result(timeout=PATIENCE)

    def disconnect(self, client):
        """Has the client's connection dropped. Its session lives on."""
        self._ask_about(client, "disconnect")

    def expire(self, client):
        """Has the client's session expired."""
        self._ask_about(client, "expire")

    def restart(self):
        """Has the server crash and come back with what it had."""
        self._ask("restart")

    def _ask_about(self, client, what):
        session, password = client.client_id
        self._ask(what, "%x" % (session & (1 << 64) - 1), password.hex())

    def _ask(self, *words):
        say(self.id, *words)
        if not self._answers.acquire(timeout=PATIENCE):
            raise TimeoutError("nobody answered: " + words[0])

    def answered(self):
        self._answers.release()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in reversed(self._clients):
            client.stop()
            client.close()
        self._threads.shutdown(wait=False)


class Section:
    """A place that counts who is inside, and whose own count is right only if one is inside at a time."""

    def __init__(self):
        self._lock = threading.Lock()
        self._inside = 0
        self.most = 0
        self.visits = 0

    def visit(self):
        with self._lock:
            self._inside += 1
            self.most = max(self.most, self._inside)
        seen = self.visits
        time.sleep(0.001)
        self.visits = seen + 1
        with self._lock:
            self._inside -= 1

    def __str__(self):
        return "%d visits by %d" % (self.visits, self.most)


class Events(queue.Queue):
    """What was heard, in the order in which it was."""

    def take(self):
        return self.get(timeout=PATIENCE)

    def take_all(self, n):
        return [self.take() for _ in range(n)]

    def take_loss(self):
        """Takes what was heard up to the new session, and returns the last three of it: a client that is quick
        to reconnect is SUSPENDED and CONNECTED once more before the server has ended its session."""
        seen = [self.take()]
        while seen[-1] != "LOST":
            seen.append(self.take())
        return seen[-2:] + [self.take()]


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("never happened: " + what)
        time.sleep(0.005)


def error(function, *args, **kwargs):
    """Returns the name of what a call raises, or OK."""
    try:
        function(*args, **kwargs)
        return "OK"
    except Exception as e:
        return type(e).__name__
