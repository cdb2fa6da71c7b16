package recipes_test

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/internal/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// crew is three sessions on one in-process server, and what is done to them.
type crew struct {
	t        testing.TB
	srv      *zktest.Server
	sessions []*zksync.Session
	fates    [3][]zktest.Fate // of the next requests of each session
	mu       sync.Mutex
}

func newCrew(t testing.TB) *crew {
	c := &crew{t: t, srv: zktest.Run(t)}
	for range 3 {
		c.sessions = append(c.sessions, c.srv.Session(t, zksync.WithTimeout(10*time.Second)))
	}
	c.srv.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !proving.Counts(q) {
			return zktest.Verdict{}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, s := range c.sessions {
			if s.ID() == q.Session && len(c.fates[i]) > 0 {
				fate := c.fates[i][0]
				c.fates[i] = c.fates[i][1:]
				return zktest.Verdict{Fate: fate, Code: -1}
			}
		}
		return zktest.Verdict{}
	})
	return c
}

// faults are actions that change nothing of what a model says.
func (c *crew) faults(actions map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	actions["disconnect"] = func(t *rapid.T) { c.srv.Disconnect(c.sessions[c.one(t)].ID()) }
	actions["isolate for a while"] = func(t *rapid.T) {
		heal := c.srv.Partition(c.sessions[c.one(t)].ID())
		time.AfterFunc(time.Duration(rapid.IntRange(1, 4).Draw(t, "seconds"))*time.Second, heal)
	}
	actions["strike"] = func(t *rapid.T) {
		i := c.one(t)
		fate := rapid.SampledFrom([]zktest.Fate{zktest.LoseRequest, zktest.LoseReply, zktest.Duplicate, zktest.Fail}).Draw(t, "fate")
		c.mu.Lock()
		defer c.mu.Unlock()
		for range rapid.IntRange(0, 3).Draw(t, "after") {
			c.fates[i] = append(c.fates[i], zktest.Continue)
		}
		c.fates[i] = append(c.fates[i], fate)
	}
	return actions
}

func (c *crew) one(t *rapid.T) int { return rapid.IntRange(0, 2).Draw(t, "session") }

// calm ends what was prepared, and what is under way.
func (c *crew) calm() {
	c.mu.Lock()
	c.fates = [3][]zktest.Fate{}
	c.mu.Unlock()
	time.Sleep(time.Minute)
}
