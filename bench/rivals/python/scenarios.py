"""The scenarios by their names, and the recipe that each uses."""
import itertools
import threading
import time

from kazoo.retry import RetryFailedError

from slices import Threads, between, received

DEEP_SESSIONS = 10


def run(s, tally):
    if s.scenario in ("uncontended", "async", "contended", "relock"):
        work(s, [c.Lock(s.path) for c in s.open(s.clients)], 1, tally)
    elif s.scenario == "local":
        # An object for each thread: of one that threads share, a thread gets nearly all.
        (c,) = s.open(1)
        work(s, [c.Lock(s.path) for _ in range(s.clients)], 1, tally)
    elif s.scenario == "semaphore":
        work(s, [c.Semaphore(s.path + "/semaphore", max_leases=s.permits) for c in s.open(s.clients)], s.permits, tally)
    elif s.scenario in ("deep", "crowd"):
        cs = s.open(min(s.clients, DEEP_SESSIONS))
        deep(s, [cs[i % len(cs)].Lock(s.path) for i in range(s.clients + 1)], tally)
    elif s.scenario == "double-barrier":
        Meeting(s, tally).run()
    elif s.scenario == "counter":
        count(s, tally)
    elif s.scenario == "queue":
        flow(s, tally)
    elif s.scenario == "gate":
        opening(s, tally)
    else:
        raise ValueError("no scenario " + s.scenario)


class Section:
    """Counts who is inside."""

    def __init__(self, limit):
        self.limit, self.inside, self.mu = limit, 0, threading.Lock()

    def visit(self):
        with self.mu:
            self.inside += 1
            if self.inside > self.limit:
                raise RuntimeError("held by too many at a time")
        with self.mu:
            self.inside -= 1


def work(s, locks, limit, tally):
    """The locks are acquired and released until the time is over. Each thread finishes the operation that it is at."""
    section, threads = Section(limit), Threads()
    tally.begin()
    before, start = received(s.servers), time.monotonic()

    def loop(lock):
        taken = []
        while True:
            began = time.monotonic()
            lock.acquire()
            taken.append(time.monotonic() - began)
            section.visit()
            lock.release()
            if time.monotonic() - start >= s.seconds or threads.error is not None:
                break
        tally.latencies += taken

    for lock in locks:
        threads.start(loop, lock)
    time.sleep(s.seconds)
    threads.join()
    tally.measured(time.monotonic() - start, between(before, received(s.servers)))


class Adder:
    """Adds one where a lock is acquired. The recipe gives up when another session was faster."""

    def __init__(self, counter):
        self.counter = counter

    def acquire(self):
        while True:
            try:
                self.counter += 1
                return
            except RetryFailedError:
                pass

    def release(self):
        pass


def count(s, tally):
    """Sessions add to one number, which must be exact at the end."""
    counters = [c.Counter(s.path + "/number") for c in s.open(s.clients)]
    work(s, [Adder(c) for c in counters], s.clients, tally)
    if counters[0].value != len(tally.latencies):
        raise RuntimeError("the number is %d after %d additions of one" % (counters[0].value, len(tally.latencies)))


BACKLOG = 64  # as bench.Backlog


def flow(s, tally):
    """Half of the sessions put into one queue, the others lock an element and consume it, as many as were put."""
    queues = [c.LockingQueue(s.path + "/queue") for c in s.open(s.clients)]
    half, threads, mu = s.clients // 2, Threads(), threading.Lock()
    sent, numbers = {}, itertools.count(1)
    there, room = threading.Semaphore(0), threading.Semaphore(BACKLOG)
    producing = [half]
    tally.begin()
    before, start = received(s.servers), time.monotonic()

    def put(queue):
        while True:
            room.acquire()
            number = next(numbers)
            sent[number] = time.monotonic()
            queue.put(b"%d" % number)
            there.release()
            if time.monotonic() - start >= s.seconds or threads.error is not None:
                break
        with mu:
            producing[0] -= 1

    def consume(queue):
        while threads.error is None:
            done = producing[0] == 0  # before the look: nothing is put after it
            if not there.acquire(timeout=0.01):
                if done:
                    return
                continue
            value = queue.get(timeout=30)
            if value is None:
                raise RuntimeError("an element is lost")
            when = sent.pop(int(value), None)
            if when is None:
                raise RuntimeError("element %s is received twice, or was never put" % value)
            room.release()
            if not queue.consume():
                raise RuntimeError("element %s was taken by another consumer, too" % value)
            tally.latencies.append(time.monotonic() - when)

    for i, queue in enumerate(queues):
        threads.start(put if i < half else consume, queue)
    time.sleep(s.seconds)
    threads.join()
    tally.measured(time.monotonic() - start, between(before, received(s.servers)))
    if sent:
        raise RuntimeError("%d elements are lost" % len(sent))


def deep(s, locks, tally):
    """Waiters queue behind a holder, one by one or all at once. Then it releases, and each releases as soon as it is granted."""
    (counter,) = s.open(1)
    section, threads = Section(1), Threads()
    holder, last, gate = locks[0], [0.0], threading.Event()
    holder.acquire()
    tally.begin()
    before, start, counts = received(s.servers), time.monotonic(), 0

    def wait(lock):
        gate.wait()
        lock.acquire()
        now = time.monotonic()
        tally.latencies.append(now - last[0])
        last[0] = now
        section.visit()
        lock.release()

    def missing():
        nonlocal counts
        counts += 1
        if threads.error is not None or time.monotonic() - start > 60:
            raise RuntimeError("not all queue: %r" % threads.error)
        return len(threads.all) + 1 - counter.exists(s.path).numChildren

    if s.scenario == "crowd":
        for lock in locks[1:]:
            threads.start(wait, lock)
        start = time.monotonic()
        gate.set()
        while True:  # what a waiter asks after it is in the queue is part of entering it
            settled, entered = settle(s)
            if missing() <= 0:
                break
        settled += 1  # the last count came after it
    else:
        gate.set()
        for lock in locks[1:]:
            threads.start(wait, lock)
            while missing() > 0:
                pass
        entered = time.monotonic()
        settled, _ = settle(s)
    tally.queueing = entered - start
    last[0] = start = time.monotonic()
    holder.release()
    threads.join()
    took, after = time.monotonic() - start, received(s.servers)
    if between(before, after) >= 0:
        tally.queueing_requests = between(before, settled) - counts
        after -= counts
    tally.measured(took, between(before, after))


def settle(s):
    """Returns when nothing was received for 50 ms: what the servers have received until then, and since when."""
    before, changed = received(s.servers), time.monotonic()
    while time.monotonic() - changed < 0.05:
        time.sleep(0.01)
        now = received(s.servers)
        if now != before:
            before, changed = now, time.monotonic()
    return before, changed


class Meeting:
    """Parties that enter and leave a double barrier: nobody leaves before all have entered, and the next round begins when
    all have left. Otherwise a slow party of kazoo's would wait for ever: it misses that the barrier was open."""

    def __init__(self, s, tally):
        self.s, self.tally, self.threads = s, tally, Threads()
        self.began, self.over, self.entering, self.start = None, False, 0, time.monotonic()
        self.mu = threading.Lock()
        self.gate = threading.Barrier(s.clients, action=self.next)
        self.inside = threading.Barrier(s.clients)

    def run(self):
        cs = self.s.open(self.s.clients)
        self.tally.begin()
        before, self.start = received(self.s.servers), time.monotonic()
        for c in cs:
            self.threads.start(self.party, c)
        time.sleep(self.s.seconds)
        self.threads.join()
        self.tally.measured(time.monotonic() - self.start, between(before, received(self.s.servers)))

    def next(self):
        """Runs when all are at the gate: a round has ended, but the first time."""
        now = time.monotonic()
        if self.began is not None:
            self.tally.latencies.append(now - self.began)
            self.over = now - self.start >= self.s.seconds
        self.entering = 0
        self.began = time.monotonic()

    def party(self, c):
        self.gate.wait()
        while not self.over:
            barrier = c.DoubleBarrier(self.s.path + "/double", self.s.clients)
            with self.mu:
                self.entering += 1
            barrier.enter()
            if self.entering < self.s.clients:
                raise RuntimeError("open before all have entered")
            self.inside.wait()
            barrier.leave()
            self.gate.wait()


def opening(s, tally):
    """Parties that all wait at a closed gate, until another session opens it. Only the opening is timed: who begins
    to wait after it is let through at once, so it comes when nothing has been sent for some time."""
    gates = [c.Barrier(s.path + "/gate") for c in s.open(s.clients + 1)]
    keeper, parties = gates[0], gates[1:]
    heard, coming = [], threading.Barrier(s.clients + 1)

    def party(gate):
        coming.wait()
        if not gate.wait(timeout=30):
            raise RuntimeError("nobody opens the gate")
        heard.append(gate)

    tally.begin()
    before, end = received(s.servers), time.monotonic() + s.seconds
    while not tally.latencies or time.monotonic() < end:
        keeper.create()
        threads = Threads()
        heard.clear()
        for gate in parties:
            threads.start(party, gate)
        coming.wait()
        settle(s)
        if heard:
            raise RuntimeError("a closed gate let somebody through")
        began = time.monotonic()
        keeper.remove()
        threads.join()
        tally.latencies.append(time.monotonic() - began)
    tally.measured(sum(tally.latencies), between(before, received(s.servers)))
