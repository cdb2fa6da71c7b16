package faults_test

import (
	"fmt"
	"path"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Each of these tests holds one argument of the protocol that no other test in this folder leans on.

// Answers that take seconds must not make a lease longer: the server counts from when it received the request.
func TestASlowAnswerProvesNoMoreThanItsRequest(t *testing.T) {
	for _, cut := range []time.Duration{0, 500 * ms, 1000 * ms, 1700 * ms, 2400 * ms, 3100 * ms} {
		t.Run(cut.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, nil)
				there(w)
				slow, other := w.clients[0], w.clients[1]
				w.start(party{name: "slow", c: slow, m: lock(slow), hold: time.Minute, watch: true})
				w.start(party{name: "other", c: other, m: lock(other), start: time.Second, hold: ms})
				time.Sleep(2 * time.Second)
				w.srv.Delay(slow.s.ID(), hop, 5*time.Second)
				time.Sleep(20*time.Second + cut)
				w.isolate(slow, 30*time.Second)
				w.finish()
				w.check()
				require.Len(t, w.book.holds, 2)
				require.NotZero(t, w.book.lost[w.book.holds[0].token], "the holder was never told\n%s", lazily(w.story))
				w.close()
			})
		})
	}
}

// The same is true of the answer to a handshake.
func TestASlowHandshakeProvesNoMoreThanItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nil)
		there(w)
		slow, other := w.clients[0], w.clients[1]
		w.start(party{name: "slow", c: slow, m: lock(slow), hold: time.Minute})
		w.start(party{name: "other", c: other, m: lock(other), start: time.Second, hold: ms})
		time.Sleep(2 * time.Second)
		w.srv.Delay(slow.s.ID(), hop, 4*time.Second)
		w.srv.Disconnect(slow.s.ID())
		time.Sleep(4*time.Second + soon)
		require.Equal(t, zksync.Connected, slow.s.State())
		w.isolate(slow, 30*time.Second)
		w.finish()
		w.check()
		require.NotZero(t, w.book.lost[w.book.holds[0].token], "the holder was never told\n%s", lazily(w.story))
		w.close()
	})
}

// The server sends watch events without having heard from the client: they prove nothing.
func TestAWatchEventDoesNotProlongALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nil)
		there(w)
		mute, other := w.clients[0], w.clients[1]
		mute.s.Conn() // so its entry is not sealed, and a write to it says nothing
		w.start(party{name: "mute", c: mute, m: lock(mute), hold: time.Minute, watch: true})
		w.start(party{name: "other", c: other, m: lock(other), start: time.Second, hold: ms})
		time.Sleep(2 * time.Second)
		w.later(30*time.Second, w.srv.DropRequests(mute.s.ID()))
		w.later(5*time.Second, func() { w.srv.Set(lockDir+"/"+w.srv.Children(lockDir)[0], []byte("written to")) })
		w.finish()
		w.checkExclusion()
		require.NotZero(t, w.book.lost[w.book.holds[0].token], "the holder was never told\n%s", lazily(w.story))
		w.close()
	})
}

// A create whose answer is lost is looked for behind a sync: another server, or the same one a moment later, may not
// have heard of it.
func TestAnEntryWhoseAnswerIsLostIsLookedForBehindASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, nil)
		there(w)
		c := w.clients[0]
		c.next = []zktest.Verdict{{}, {Fate: zktest.LoseReply}}
		l, err := lock(c).LockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, "[getData multi sync getChildren]", fmt.Sprint(c.requests[:4]))
		require.NoError(t, l.Unlock())
		w.close()
	})
}

// A writer that is downgraded leaves a reader in its place: the departure of its node is no grant, whether
// it is directly ahead or was known early to be the last.
func TestAReaderInTheWritersPlaceKeepsAMutexOut(t *testing.T) {
	for _, between := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d between", between), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, nil)
				there(w)
				stranger, c := w.clients[1], w.clients[0]
				var ahead []string
				for i := range between {
					ahead = append(ahead, enter(w, stranger, fmt.Sprintf("%032d-lock-", i)))
				}
				writer := enter(w, stranger, "_c_11111111-2222-3333-4444-555555555555-__WRIT__")
				w.start(party{name: "mutex", c: c, m: lock(c), hold: ms})
				time.Sleep(soon)
				for _, n := range ahead {
					w.srv.Delete(n)
					time.Sleep(soon)
				}
				number := writer[len(writer)-10:]
				reader := lockDir + "/_c_66666666-7777-8888-9999-000000000000-__READ__" + number
				w.srv.Create(reader, nil, zk.FlagEphemeral, stranger.s.ID())
				w.srv.Delete(writer)
				time.Sleep(soon)
				require.Empty(t, w.book.holds, "granted beside a reader")
				w.srv.Delete(reader)
				w.finish()
				require.Len(t, w.book.holds, 1)
				w.close()
			})
		})
	}
}

// enter queues an entry of another library.
func enter(w *world, c *client, prefix string) string {
	return w.srv.Create(lockDir+"/"+prefix, nil, zk.FlagEphemeral|zk.FlagSequence, c.s.ID())
}

// Numbers run out in the middle of a queue: from then on they repeat, and nothing but the order of creation counts.
func TestEveryFaultAtTheEndOfTheNumbersLeavesTheLockSound(t *testing.T) {
	sc := scenario{name: "end of the numbers", clients: 3, before: func(w *world) {
		there(w)
		w.srv.SetSequence(lockDir, 1<<31-2)
	}, play: scenarios()[slices.IndexFunc(scenarios(), func(s scenario) bool { return s.name == "far behind" })].play}
	normal := run(t, sc, nil, 0)
	for _, p := range singles(sc, normal.asked) {
		if proving.Drawn(t, p) {
			t.Run(p.name(), func(t *testing.T) { strikes(t, sc, p, normal.took) })
		}
	}
}

// The bounds of the local hand-over are kept: after so many, a process that waits is served.
func TestHandOverWithinAProcessIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, nil)
		there(w)
		m := lock(w.clients[0])
		for i := range 4 {
			w.start(party{name: fmt.Sprint("local", i), c: w.clients[0], m: m, hold: 3 * ms, rounds: 10})
		}
		w.start(party{name: "remote", c: w.clients[1], m: lock(w.clients[1]), start: ms, hold: ms})
		w.finish()
		at := slices.IndexFunc(w.book.holds, func(h *hold) bool { return h.party == "remote" })
		require.LessOrEqual(t, at, 5, "10 ms are over after four holds of 3 ms")
		nodes := map[string]bool{}
		for _, h := range w.book.holds {
			nodes[path.Base(h.node)] = true
		}
		require.Less(t, len(nodes), 20, "the place was hardly handed over")
		w.check()
		w.close()
	})
}
