package queue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
)

// What a waiter in a crowd receives until it is granted does not depend on how many are ahead of it.
func TestAWaiterInACrowdReceivesTheSameHoweverManyWait(t *testing.T) {
	few := int64(0)
	for _, depth := range []int{10, 100, 1000, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.crowd("a")
			a := w.client("a")
			var ahead []string
			for i := range depth {
				name := fmt.Sprintf("/_c_%08x-0000-9000-8000-000000000000-lock-", i)
				ahead = append(ahead, w.srv.Create(dir+name, nil, zk.FlagSequence, 0))
				w.srv.Set(dir, []byte(name[1:]))
			}
			before := a.received.Load()
			w.enter("a", "lock", "", false)
			w.pass()
			for i, path := range ahead {
				if i == depth-1 {
					w.srv.Set(path, nil) // the last of them says that it has held
				}
				w.srv.Delete(path)
			}
			w.pass()
			received := a.received.Load() - before
			require.NotNil(t, a.ticket)
			if few == 0 {
				few = received
			}
			require.Equal(t, few, received, "bytes behind %d", depth)
			w.close()
		})
	}
}

// A goroutine is slow to ask for its watches. Meanwhile another one of the process queues behind it, and has the slow one's node watched.
func TestAGuessThatIsNotThereProvesNothingThoughTheOwnNodeIsWatchedAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.crowd("a")
		var ahead []string
		for i := range 2 {
			name := fmt.Sprintf("/_c_%08x-0000-9000-8000-000000000000-lock-", i)
			ahead = append(ahead, w.srv.Create(dir+name, nil, zk.FlagSequence, 0))
			w.srv.Set(dir, []byte(name[1:]))
		}
		w.srv.Delete(ahead[1]) // the last one has given up waiting
		ctx, cancel := context.WithCancel(context.Background())
		slow, behind := w.queue(w.client("a"), "lock", ""), w.queue(w.client("a"), "lock", "")
		slow.Waits = func(queue.Entry) {
			go func() { _, _ = behind.Obtain(ctx, nil) }()
			time.Sleep(10 * latency)
		}
		got := make(chan *queue.Ticket, 1)
		go func() {
			t, _ := slow.Obtain(ctx, nil)
			got <- t
		}()
		w.pass()
		require.Empty(t, got, "the first one holds")
		w.srv.Delete(ahead[0])
		w.pass()
		require.Len(t, got, 1)
		cancel()
		(<-got).Leave(time.Second)
		w.close()
	})
}
