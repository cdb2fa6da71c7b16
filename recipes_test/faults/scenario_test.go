package faults_test

import (
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

// scenario is a small play. Its parties start at different instants, so that without faults it
// always goes the same way.
type scenario struct {
	name    string
	clients int
	before  func(w *world) // without network delay, before anybody counts
	beats   int            // heartbeats of each client that are struck, too
	play    func(w *world)
}

const ms = time.Millisecond

func lock(c *client, opts ...zksync.Option) *zksync.Mutex {
	return zksync.NewMutex(c.s, lockDir, opts...)
}

// there makes the directory.
func there(w *world) {
	w.srv.Create("/locks", nil, 0, 0)
	w.srv.Create(lockDir, nil, 0, 0)
}

// used is there for a directory in which a lock has been used: then two that come at the same time need not look twice.
func used(w *world) {
	there(w)
	w.srv.Set(lockDir, []byte("_c_2d4a1c1e-6f0f-8b7e-9d4f-5a1b2c3d4e5f-lock-"))
}

func scenarios() []scenario {
	return []scenario{
		{name: "alone on a fresh path", clients: 1, play: func(w *world) {
			w.start(party{name: "a", c: w.clients[0], m: lock(w.clients[0]), hold: 30 * ms})
		}},
		{name: "alone in an existing directory", clients: 1, before: there, play: func(w *world) {
			w.start(party{name: "a", c: w.clients[0], m: lock(w.clients[0]), hold: 30 * ms})
		}},
		{name: "alone and watched, twice", clients: 1, before: there, play: func(w *world) {
			w.start(party{name: "a", c: w.clients[0], m: lock(w.clients[0]), hold: 30 * ms, watch: true, rounds: 2})
		}},
		{name: "hand-over", clients: 2, before: there, play: func(w *world) {
			w.start(party{name: "holder", c: w.clients[0], m: lock(w.clients[0]), hold: 50 * ms})
			w.start(party{name: "waiter", c: w.clients[1], m: lock(w.clients[1]), start: 10 * ms, hold: 30 * ms})
		}},
		{name: "hand-over, watched", clients: 2, before: there, play: func(w *world) {
			w.start(party{name: "holder", c: w.clients[0], m: lock(w.clients[0]), hold: 50 * ms, watch: true})
			w.start(party{name: "waiter", c: w.clients[1], m: lock(w.clients[1]), start: 10 * ms, hold: 30 * ms, watch: true})
		}},
		{name: "long hand-over", clients: 2, beats: 3, before: there, play: func(w *world) {
			w.start(party{name: "holder", c: w.clients[0], m: lock(w.clients[0]), hold: 20 * time.Second, watch: true})
			w.start(party{name: "waiter", c: w.clients[1], m: lock(w.clients[1]), start: 10 * ms, hold: 30 * ms})
		}},
		{name: "far behind", clients: 3, before: there, play: func(w *world) {
			w.start(party{name: "holder", c: w.clients[0], m: lock(w.clients[0]), hold: 50 * ms})
			w.start(party{name: "next", c: w.clients[1], m: lock(w.clients[1]), start: 10 * ms, hold: 40 * ms})
			w.start(party{name: "far", c: w.clients[2], m: lock(w.clients[2]), start: 25 * ms, hold: 30 * ms})
		}},
		{name: "cancelled waiter", clients: 3, before: there, play: func(w *world) {
			w.start(party{name: "holder", c: w.clients[0], m: lock(w.clients[0]), hold: 50 * ms})
			w.start(party{name: "gives up", c: w.clients[1], m: lock(w.clients[1]), start: 10 * ms, wait: 30 * ms, hold: 30 * ms})
			w.start(party{name: "behind", c: w.clients[2], m: lock(w.clients[2]), start: 25 * ms, hold: 30 * ms})
		}},
		{name: "local hand-over", clients: 2, before: used, play: func(w *world) {
			m := lock(w.clients[0], zksync.WithHandover(1))
			w.start(party{name: "a1", c: w.clients[0], m: m, hold: 3 * ms, rounds: 2})
			w.start(party{name: "a2", c: w.clients[0], m: m, start: 1 * ms, hold: 3 * ms, rounds: 2})
			w.start(party{name: "b", c: w.clients[1], m: lock(w.clients[1]), start: 2 * ms, hold: 30 * ms})
		}},
		{name: "try", clients: 2, play: func(w *world) {
			m := lock(w.clients[0])
			w.start(party{name: "first", c: w.clients[0], m: m, hold: 50 * ms, try: true})
			w.start(party{name: "refused", c: w.clients[1], m: lock(w.clients[1]), start: 25 * ms, hold: 10 * ms, try: true})
			w.start(party{name: "waits", c: w.clients[1], m: lock(w.clients[1]), start: 40 * ms, hold: 30 * ms})
			w.start(party{name: "late", c: w.clients[0], m: m, start: 150 * ms, hold: 10 * ms, try: true})
		}},
		{name: "linger", clients: 2, before: there, play: func(w *world) {
			m := lock(w.clients[0], zksync.WithLinger(200*ms))
			w.start(party{name: "a", c: w.clients[0], m: m, hold: 20 * ms, rounds: 2})
			w.start(party{name: "b", c: w.clients[1], m: lock(w.clients[1]), start: 100 * ms, hold: 30 * ms})
		}},
		{name: "bounded hold", clients: 2, before: there, play: func(w *world) {
			w.start(party{name: "a", c: w.clients[0], m: lock(w.clients[0], zksync.WithMaxHold(30*ms)), hold: 60 * ms})
			w.start(party{name: "b", c: w.clients[1], m: lock(w.clients[1]), start: 10 * ms, hold: 30 * ms})
		}},
		{name: "unlocks that do not wait", clients: 2, before: there, play: func(w *world) {
			w.start(party{name: "a", c: w.clients[0], m: lock(w.clients[0], zksync.WithAsyncUnlock()), hold: 20 * ms, rounds: 3})
			w.start(party{name: "b", c: w.clients[1], m: lock(w.clients[1], zksync.WithAsyncUnlock()), start: 10 * ms, hold: 20 * ms, rounds: 2})
		}},
	}
}

// sealedScenarios are those in which a release tells more than a departure, played by clients whose identities the
// servers know. The first request of a client that was struck by a loss of its connection is not sealed any more.
func sealedScenarios() (out []scenario) {
	for _, sc := range scenarios() {
		if !slices.Contains([]string{"hand-over", "far behind", "cancelled waiter", "local hand-over", "unlocks that do not wait"}, sc.name) {
			continue
		}
		sc.name += ", sealed"
		sc.before = func(w *world) {
			there(w)
			introduce(w)
		}
		out = append(out, sc)
	}
	return out
}

// introduce has every client present its identity, which it does with its first entry.
func introduce(w *world) {
	w.introducing.Store(true)
	for _, c := range w.clients {
		m := zksync.NewMutex(c.s, "/elsewhere")
		m.Lock()
		m.Unlock()
	}
	time.Sleep(ms)
	w.introducing.Store(false)
}
