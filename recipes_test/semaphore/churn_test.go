package semaphore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

// churn is a semaphore under many who come, go, give up, are cut off and die.
type churn struct {
	sessions []*zksync.Session
	v        *proving.Env
	permits  int64
	end      time.Time

	mu     sync.Mutex
	held   map[*zksync.Lease]held
	most   int64
	grants map[int]int // by session
	lost   int
	wrong  []string
	doomed map[int]int64 // sessions that are ended by force
}

// held is what one of them believes to hold.
type held struct {
	session int
	permits int64
}

// soak is how long the churn lasts: a minute where time is virtual, or asked for.
func soak(v *proving.Env) time.Duration {
	if v.Virtual || proving.Full {
		return time.Minute
	}
	return 6 * time.Second
}

func TestAcceptance077AtMostAsManyPermitsAreHeldUnderChurn(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		c := &churn{v: v, permits: 5, end: time.Now().Add(soak(v)), held: make(map[*zksync.Lease]held), grants: make(map[int]int), doomed: make(map[int]int64)}
		for range 6 {
			c.sessions = append(c.sessions, v.Session(zksync.WithTimeout(4*time.Second)))
		}
		sessions := c.sessions
		var all sync.WaitGroup
		for i, s := range sessions {
			w := zksemaphore.NewWeighted(s, proving.SemPath, c.permits)
			for j := range 2 {
				rnd := rand.New(rand.NewPCG(uint64(i), uint64(j)))
				all.Go(func() { c.customer(i, w, rnd) })
			}
		}
		c.trouble(sessions, rand.New(rand.NewPCG(77, 77)))
		all.Wait()
		require.Empty(t, c.wrong)
		require.Equal(t, c.permits, c.most, "all of them were held at some time")
		for i := range sessions {
			require.Positive(t, c.grants[i], "session %d has starved", i)
		}
		v.Queued(proving.SemQueue, 0)
		available(v, c.permits, zksemaphore.NewWeighted(v.Session(), proving.SemPath, c.permits))
		t.Logf("grants by session: %v, %d lost", c.grants, c.lost)
	})
}

// over tells when the churn ends: when its time is over, but on real servers, which may have stood still for all
// of it, not before it has come to what is asked of it.
func (c *churn) over() bool {
	late := time.Since(c.end)
	if late < 0 || c.v.Virtual {
		return late >= 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return late > c.v.Patience() || c.most == c.permits && len(c.grants) == len(c.sessions)
}

// customer asks for permits again and again, mostly without much patience.
func (c *churn) customer(session int, w *zksemaphore.Weighted, rnd *rand.Rand) {
	for !c.over() {
		n := 1 + rnd.Int64N(3)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(5+rnd.IntN(2000))*time.Millisecond)
		l, err := w.AcquireLease(ctx, n)
		cancel()
		if err != nil {
			continue
		}
		c.enter(session, l, n)
		longest := 100
		if rnd.IntN(30) == 0 {
			longest = 6000 // so long that it may be lost
		}
		select {
		case <-l.Done():
		case <-time.After(time.Duration(rnd.IntN(longest)) * time.Millisecond):
		}
		c.leave(l)
		_ = l.Unlock() // a loss is part of the game
	}
}

// enter counts what is held at the instant of a grant.
func (c *churn) enter(session int, l *zksync.Lease, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants[session]++
	if c.sessions[session].ID() == c.doomed[session] {
		return // granted in the very moment in which its session is ended by force
	}
	c.held[l] = held{session, n}
	var sum int64
	for l, h := range c.held {
		if l.Valid() {
			sum += h.permits
		}
	}
	c.most = max(c.most, sum)
	if sum > c.permits {
		c.wrong = append(c.wrong, fmt.Sprintf("%d permits held when session %d was granted %d", sum, session, n))
	}
}

func (c *churn) leave(l *zksync.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, l)
	if l.Err() != nil {
		c.lost++
	}
}

// dies takes a session's holds out of the count: a process that is dead believes nothing.
func (c *churn) dies(session int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doomed[session] = c.sessions[session].ID()
	for l, h := range c.held {
		if h.session == session {
			delete(c.held, l)
		}
	}
}

// victim is a session that holds something, or else i.
func (c *churn) victim(i int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range c.held {
		return h.session
	}
	return i
}

// trouble comes to one session after the other until the time is over, and ends then.
func (c *churn) trouble(sessions []*zksync.Session, rnd *rand.Rand) {
	heals := make([]func(), len(sessions))
	until := make([]time.Time, len(sessions))
	for !c.over() {
		<-time.After(time.Duration(20+rnd.IntN(300)) * time.Millisecond)
		for i, heal := range heals {
			if heal != nil && time.Now().After(until[i]) {
				heal()
				heals[i] = nil
			}
		}
		i := c.victim(rnd.IntN(len(sessions)))
		if heals[i] != nil || sessions[i].State() != zksync.Connected {
			continue
		}
		switch rnd.IntN(16) {
		case 0:
			c.dies(i)
			c.v.Expire(sessions[i])
		case 1: // for longer than the session lives, or not
			heals[i], until[i] = c.v.Partition(sessions[i]), time.Now().Add(time.Duration(rnd.IntN(6000))*time.Millisecond)
		default:
			c.v.Disconnect(sessions[i])
		}
	}
	for _, heal := range heals {
		if heal != nil {
			heal()
		}
	}
}
