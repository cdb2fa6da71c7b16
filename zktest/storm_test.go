package zktest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

var (
	stormSeeds = flag.Int("storms", 100, "how many random storms of faults a server lives through")
	stormFirst = flag.Int("storm", 0, "the seed of the first")
	// Not by default: the client has a data race between its setWatches and what it receives, which -race reports.
	stormWatch = flag.Bool("stormwatch", false, "clients set watches, too; not with -race")
	stormTold  = flag.Bool("stormtold", false, "print what happens as it does")
)

// Whatever faults a server has had, in whatever order: when they are over every client is answered soon, and what a
// session has asked for was done in the order in which it was asked.
func TestAfterAnyStormOfFaultsEveryClientIsServedInOrder(t *testing.T) {
	t.Parallel()
	eachStorm(t, 1)
}

// In an ensemble what is left of a session at a member that it has left may run when it comes back, or be refused: there the order is
// not looked at.
func TestAfterAnyStormOfFaultsOverAnEnsembleEveryClientIsServed(t *testing.T) {
	t.Parallel()
	eachStorm(t, 3)
}

func eachStorm(t *testing.T, members int) {
	for seed := range *stormSeeds {
		seed += *stormFirst
		synctest.Test(t, func(t *testing.T) { newStorm(t, seed, members).run() })
		if t.Failed() {
			t.Fatalf("seed %d: -storm %[1]d -storms 1 repeats it", seed)
		}
	}
}

// storm is a server, clients that go on asking, and the faults that are at work.
type storm struct {
	t       *testing.T
	luck    *rand.Rand
	e       *zktest.Ensemble // nil for one server on its own
	srv     *zktest.Server   // or the member that the next fault is to meet
	clients []*stormClient
	undo    []func()
	story   []string
	start   time.Time
}

func newStorm(t *testing.T, seed, members int) *storm {
	s := &storm{t: t, luck: rand.New(rand.NewPCG(uint64(seed), 0)), start: time.Now()}
	var opts []zktest.Option
	if s.luck.IntN(3) == 0 {
		opts = append(opts, zktest.WithCommitLatency(time.Duration(s.luck.IntN(300))*time.Millisecond))
	}
	if s.luck.IntN(3) == 0 {
		opts = append(opts, zktest.WithReordering(time.Duration(1+s.luck.IntN(100))*time.Millisecond), zktest.WithSeed(uint64(seed)))
	}
	connect := func(timeout time.Duration) *zk.Conn { return s.e.Connect(t, timeout) }
	if members > 1 {
		s.e = zktest.RunEnsemble(t, members, append(opts, zktest.WithTick(time.Second))...)
		s.srv = s.e.Server(0)
	} else {
		s.srv = zktest.Run(t, opts...)
		connect = func(timeout time.Duration) *zk.Conn { return s.srv.Connect(t, timeout) }
	}
	for i := range 1 + s.luck.IntN(4) {
		timeout := []time.Duration{2, 4, 10, 60}[s.luck.IntN(4)] * time.Second
		s.clients = append(s.clients, &stormClient{
			i: i, conn: connect(timeout), luck: rand.New(rand.NewPCG(uint64(seed), uint64(1+i))), over: make(chan struct{}),
		})
	}
	return s
}

// stormClient asks for one thing after the other. Each request has its number in its path.
type stormClient struct {
	i    int
	conn *zk.Conn
	luck *rand.Rand
	n    atomic.Int64 // of the request that is under way
	stop atomic.Bool
	over chan struct{}
}

func (c *stormClient) run() {
	defer close(c.over)
	for ; !c.stop.Load(); c.n.Add(1) {
		c.ask()
		if c.luck.IntN(3) == 0 {
			time.Sleep(time.Duration(c.luck.IntN(400)) * time.Millisecond)
		} else {
			time.Sleep(time.Millisecond) // or time would stand still while nothing is in the way
		}
	}
}

func (c *stormClient) ask() {
	path := fmt.Sprintf("/c%d-%d", c.i, c.n.Load())
	switch c.luck.IntN(6) {
	case 0, 1:
		_, _ = c.conn.Create(path, nil, int32(c.luck.IntN(2)), open)
	case 2:
		_, _, _ = c.conn.Get(path)
	case 3:
		if *stormWatch {
			_, _, _, _ = c.conn.ExistsW(path)
		} else {
			_, _, _ = c.conn.Exists(path)
		}
	case 4:
		_ = c.conn.Delete(path, -1)
	case 5:
		_, _ = c.conn.Multi(&zk.CreateRequest{Path: path, Acl: open}, &zk.DeleteRequest{Path: path, Version: -1})
	}
}

func (s *storm) run() {
	for _, c := range s.clients {
		go c.run()
	}
	for range 5 + s.luck.IntN(50) {
		s.step()
	}
	for len(s.undo) > 0 {
		s.end(len(s.undo) - 1)
	}
	s.say("all is over")
	// What is delayed still waits; and a client may have a session timeout to go until it gives a connection up.
	deadline := time.After(time.Minute)
	for _, c := range s.clients {
		c.stop.Store(true)
	}
	for _, c := range s.clients {
		select {
		case <-c.over:
		case <-deadline:
			s.fail("client %d has no answer to request %d", c.i, c.n.Load())
			return
		}
	}
	for _, c := range s.clients {
		before := time.Now()
		_, _, err := c.conn.Exists("/")
		for err != nil && time.Since(before) < 10*time.Second {
			_, _, err = c.conn.Exists("/")
		}
		if took := time.Since(before); err != nil || took > 10*time.Second {
			s.fail("client %d is answered after %v: %v", c.i, took, err)
		}
	}
	if s.e == nil {
		s.checkOrder()
	}
	time.Sleep(70 * time.Second) // sessions whose begin no client has heard of end
}

func (s *storm) say(format string, args ...any) {
	line := fmt.Sprintf("%v: ", time.Since(s.start)) + fmt.Sprintf(format, args...)
	s.story = append(s.story, line)
	if *stormTold {
		fmt.Println(line) // now: a test that hangs prints nothing else
	}
}

func (s *storm) fail(format string, args ...any) {
	s.t.Errorf("%s\n%s\n%s", fmt.Sprintf(format, args...), strings.Join(s.story, "\n"), s.srv.Dump())
	for _, c := range s.clients {
		c.stop.Store(true)
	}
}

// checkOrder requires that the requests of each session ran in the order in which its client made them. What was lost or dropped did not run.
func (s *storm) checkOrder() {
	type who struct{ client, session string }
	last := map[who]int{}
	for _, q := range s.srv.Log() {
		client, number, ok := strings.Cut(strings.TrimPrefix(q.Path, "/c"), "-")
		if !ok || q.Session == 0 || q.Op == zktest.SetWatches || q.Fate == "request lost" || strings.HasPrefix(q.Fate, "dropped") {
			continue
		}
		n, err := strconv.Atoi(number)
		require.NoError(s.t, err)
		key := who{client, strconv.FormatInt(q.Session, 16)}
		if n < last[key] {
			s.fail("client %s: request %d ran after %d: %v", client, n, last[key], q)
			return
		}
		last[key] = n
	}
}
