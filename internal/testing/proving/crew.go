package proving

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Crew is three sessions on one in-process server, and what is done to them.
type Crew struct {
	T        testing.TB        // the test, which may be one of rapid's
	Server   *zktest.Server    // the only one
	Sessions []*zksync.Session // three
	fates    [3][]zktest.Fate  // of the next requests of each session
	mu       sync.Mutex
}

// NewCrew starts a server, and the sessions.
func NewCrew(t testing.TB) *Crew {
	c := &Crew{T: t, Server: zktest.Run(t)}
	for range 3 {
		c.Sessions = append(c.Sessions, c.Server.Session(t, zksync.WithTimeout(10*time.Second)))
	}
	c.Server.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
		if !Counts(q) {
			return zktest.Verdict{}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for i, s := range c.Sessions {
			if s.ID() == q.Session && len(c.fates[i]) > 0 {
				fate := c.fates[i][0]
				c.fates[i] = c.fates[i][1:]
				return zktest.Verdict{Fate: fate, Code: zktest.CodeMarshalling}
			}
		}
		return zktest.Verdict{}
	})
	return c
}

// Faults are actions that change nothing of what a model says.
func (c *Crew) Faults(actions map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	actions["disconnect"] = func(t *rapid.T) { c.Server.Disconnect(c.Sessions[c.One(t)].ID()) }
	actions["isolate for a while"] = func(t *rapid.T) {
		heal := c.Server.Partition(c.Sessions[c.One(t)].ID())
		time.AfterFunc(time.Duration(rapid.IntRange(1, 4).Draw(t, "seconds"))*time.Second, heal)
	}
	actions["strike"] = func(t *rapid.T) {
		i := c.One(t)
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

// One draws one of the sessions.
func (c *Crew) One(t *rapid.T) int { return rapid.IntRange(0, 2).Draw(t, "session") }

// Calm ends what was prepared, and what is under way.
func (c *Crew) Calm() {
	c.mu.Lock()
	c.fates = [3][]zktest.Fate{}
	c.mu.Unlock()
	time.Sleep(time.Minute)
}
