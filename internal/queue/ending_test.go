package queue_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/zktest"
)

// What is left of a hold after each ending in each state, in the plainest words.
func TestEveryEndingInEveryStateLetsGoOfAllOnce(t *testing.T) {
	states := map[string]func(*queue.Ticket) (removed <-chan struct{}){
		"live":      func(*queue.Ticket) <-chan struct{} { return nil },
		"replacing": func(p *queue.Ticket) <-chan struct{} { p.SetReplacing(true); return nil },
		"retiring":  func(p *queue.Ticket) <-chan struct{} { return p.Retire() },
		"over":      func(p *queue.Ticket) <-chan struct{} { p.Leave(time.Second); return nil },
	}
	endings := map[string]queue.Ending{"released": queue.Released, "overrun": queue.Overrun, "expired": queue.Expired, "removed": queue.Removed, "replaced": queue.Replaced}
	for state, enter := range states {
		for ending, why := range endings {
			t.Run(ending+" while "+state, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					c, told := w.client("a"), 0
					q := w.queue(c, "lock", "")
					q.Delay = time.Minute
					p, err := q.Obtain(context.Background(), func(*queue.Ticket) { told++ })
					require.NoError(t, err)
					p.Asked.Done()
					w.pass()
					require.Len(t, w.srv.Children(dir), 3, "the entry, the mark, the node of a request")

					removed := enter(p)
					p.End(why, time.Second)
					w.pass()
					ends := why != queue.Removed || state == "live" || state == "over"
					left := []bool{!ends || why == queue.Replaced, !ends || why != queue.Released, !ends} // in the order of what is there
					if state == "over" {
						left = []bool{false, false, false}
					}
					require.Equal(t, ends || state == "retiring", p.Over())
					for i, start := range []string{"_c_", "held-", "revoke-"} {
						there := slices.ContainsFunc(w.srv.Children(dir), func(n string) bool { return strings.HasPrefix(n, start) })
						require.Equal(t, left[i], there, start)
					}
					lost := state == "live" && why == queue.Removed || (state == "live" || state == "replacing") && why == queue.Expired
					require.Equal(t, map[bool]int{true: 1}[lost], told)
					if removed != nil {
						_, open := <-closed(removed)
						require.Equal(t, ends, !open)
					}
					proves := w.srv.Intercept(zktest.On(zktest.Sync, "/").Times(1).Maybe())
					time.Sleep(timeout)
					require.Equal(t, ends, proves.Fired() == 0, "it asks for no proof any more")

					p.SetReplacing(false) // a node that is there is held as before
					w.pass()
					p.End(queue.Released, time.Second)
					p.End(queue.Expired, time.Second)
					w.pass()
					require.True(t, p.Over())
					require.Equal(t, map[bool]int{true: 1}[lost], told, "the first reason counts")
					c.conn.Close()
				})
			})
		}
	}
}

// closed is c if it is closed, else a channel that holds a value.
func closed(c <-chan struct{}) <-chan struct{} {
	select {
	case <-c:
		return c
	default:
		open := make(chan struct{}, 1)
		open <- struct{}{}
		return open
	}
}
