package queue_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// Whatever clients, networks and strangers do: the set ahead only shrinks and nobody is granted while a blocker lives,
// which the world checks, and everybody who waits is granted when all ahead have left.
func TestWhateverHappensTheQueueIsSound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			w := newWorld(rt)
			kinds := rapid.SampledFrom([][]queue.Kind{
				{queue.KindLock}, {queue.KindRead, queue.KindWrite}, {queue.KindRead, queue.KindRead, queue.KindWrite, queue.KindLock}, {queue.KindPermit}}).Draw(rt, "kinds")
			w.capacity = 3
			if rapid.Bool().Draw(rt, "sealed") {
				w.seal()
			}
			for range rapid.IntRange(5, 30).Draw(rt, "steps") {
				w.step(rt, kinds)
			}
			w.drain()
			w.close()
		})
	})
}

// step lets something happen, and at times waits until it has had its effect.
func (w *world) step(rt *rapid.T, kinds []queue.Kind) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}).Draw(rt, "who")
	c := w.client(name)
	w.mu.Lock()
	asks, holds := c.asks, c.ticket != nil
	writes := holds && c.ticket.Entry.Kind == queue.KindWrite && !c.ticket.Over()
	w.mu.Unlock()
	switch what := rapid.SampledFrom([]string{"enter", "enter", "leave", "disconnect", "expire", "delete", "lose", "write", "downgrade"}).Draw(rt, "what"); {
	case !asks && !holds:
		w.enter(name, string(rapid.SampledFrom(kinds).Draw(rt, "kind")), strconv.Itoa(rapid.IntRange(1, 3).Draw(rt, "weight")), false)
	case what == "leave":
		w.leave(name)
	case what == "disconnect":
		w.srv.Disconnect(c.session())
	case what == "expire":
		w.srv.Expire(c.session())
	case what == "delete" || what == "write":
		if path := w.newest(name); path != "" && what == "delete" {
			w.srv.Delete(path)
		} else if path != "" && !queue.Sealed(path) { // the servers refuse that: see TestNobodyElseWritesToASealedEntry
			w.srv.Set(path, []byte("by a stranger"))
		}
	case what == "downgrade" && writes:
		w.downgrade(name)
	case what == "lose":
		w.rule("deleted", name, "lose")
	}
	time.Sleep(time.Duration(rapid.SampledFrom([]int{0, 1, 3, 100, 5000}).Draw(rt, "pause")) * time.Millisecond)
	synctest.Wait()
}

// drain has those who hold leave, again and again, until nobody waits. An event that was lost may cost a session timeout
// each time.
func (w *world) drain() {
	for range 4 * len(w.clients) {
		waiting := 0
		for _, c := range w.clients {
			w.mu.Lock()
			holds := c.ticket != nil
			if c.asks {
				waiting++
			}
			w.mu.Unlock()
			if holds {
				w.leave(c.name)
			}
		}
		if waiting == 0 {
			return
		}
		time.Sleep(timeout + time.Second)
	}
	require.Fail(w.t, "somebody waits, and nobody is ahead", w.srv.Dump())
}

// Of N waiters each watches three nodes: its own, the one ahead and, after a while, its scout, which the first one has not
// got. One release tells the next one and the one behind it, and neither asks anything; however many wait.
func TestOneReleaseTellsTwoHoweverManyWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		w := newWorld(t)
		for i := range n + 1 {
			w.enter("w"+strconv.Itoa(i), "lock", "", false)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second) // the holder watches its own node, too
		require.Equal(t, 3*n-1+1, w.srv.Watches())
		for _, name := range w.srv.Children(dir) {
			require.LessOrEqual(t, w.srv.WatchesOn(dir+"/"+name), 3)
		}
		for i, next := range w.clients[1:] {
			events, requests := w.srv.Notifications(), w.srv.Requests()
			w.leave("w" + strconv.Itoa(i))
			w.pass()
			require.NotNil(t, next.ticket, next.name)
			behind := min(1, n-1-i)
			require.Equal(t, 2+behind, w.srv.Notifications()-events, "to the leaver itself, the next one, the one behind")
			require.Equal(t, 1, w.srv.Requests()-requests, "the release")
		}
		w.close()
	})
}
