//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

const (
	// chaosEnv is for how long the faults go on, seedEnv says which: "make chaos" sets them.
	chaosEnv     = "MENAGERIE_CHAOS"
	chaosSeedEnv = "MENAGERIE_CHAOS_SEED"

	// shortChaos is the form that "make test" has time for, and its seed, so that a change is not judged by luck.
	shortChaos     = 20 * time.Second
	shortChaosSeed = 1

	// chaosTimeout is longer than the servers need to give up one of them (ten ticks, five seconds).
	chaosTimeout = 6 * time.Second

	// longHold is how long some holds last: longer than a lease does when nobody answers for its session.
	longHold = 5 * time.Second

	// calm is for how long the demo goes on when all faults are over. Each worker has to finish its round then.
	calm = 10 * time.Second

	// recovery is the time within which somebody has to hold the lock when the faults are over and the servers have
	// a leader: the session of the last holder ends (six seconds), or it holds for long (five), and the servers may
	// find out only now that they do not hear from each other (five). A busy machine gets three times as much again.
	recovery = time.Minute
)

func TestDemoIsRightThroughChaosAmongThreeRealServers(t *testing.T) {
	t.Parallel()
	span, seed := chaosFor(t)
	e := ensemble.ForTestConfig(t, ensemble.Config{Servers: 3, Networks: canCut(t)})
	t.Logf("%v of faults; again with %s=%v %s=%d", span, chaosEnv, span, chaosSeedEnv, seed)
	p := startBy(e.StartClient, t, []string{"TMPDIR=" + e.Dir()}, "demo", "--workers", "4", "--for", (span + calm).String(), "--kill", "--json",
		"--long", longHold.String(), "--timeout", chaosTimeout.String(), "--servers", e.Connect())
	workersOf(t, p, 4)
	c := &chaos{t: t, e: e, rng: rand.New(rand.NewPCG(seed, 0)), begin: time.Now(), starts: map[*ensemble.Server]func(){}}
	c.rage(span)
	c.logf("all faults are over, %d rounds done", p.roundsDone())
	before := len(p.progress())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := e.Leader(ctx)
	require.NoError(t, err)
	over := time.Now()
	require.Eventually(t, func() bool { return len(p.progress()) > before }, recovery, pause, "nobody goes on:\n%s", &p.stderr)
	c.logf("somebody goes on, %v after there is a leader", time.Since(over).Round(time.Millisecond))
	select {
	case <-p.done:
	case <-time.After(calm + recovery):
		require.Fail(t, "somebody does not go on", p.stderr.String())
	}
	require.Equal(t, 0, p.wait(), p.stderr.String())
	r := p.lastLine()
	require.Equal(t, demoResult{Workers: 4, Rounds: r.Rounds, Expected: r.Counter, Counter: r.Counter, TokensMonotonic: true, Killed: 1}, r)
	t.Log(p.stderr.String())
}

// chaosFor is how long the faults go on, and their seed.
func chaosFor(t *testing.T) (time.Duration, uint64) {
	t.Helper()
	span, seed := shortChaos, uint64(shortChaosSeed)
	if text := os.Getenv(chaosEnv); text != "" {
		var err error
		span, err = time.ParseDuration(text)
		require.NoError(t, err, chaosEnv)
		seed = rand.Uint64()
	}
	if text := os.Getenv(chaosSeedEnv); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, chaosSeedEnv)
	}
	return span, seed
}

// canCut reports whether this machine lets the test cut connections. That it is not allowed to is the machine's to
// decide; what can be installed has to be there where a test that cannot run is a failure.
func canCut(t *testing.T) bool {
	t.Helper()
	err := ensemble.CanCut()
	if err != nil && !errors.Is(err, ensemble.ErrNoNetwork) && ensemble.Required() {
		t.Fatal(err)
	}
	if err != nil {
		t.Logf("WITHOUT CUTS, servers are only killed and frozen: %v", err)
	}
	return err == nil
}

// chaos strikes the servers of an ensemble.
type chaos struct {
	t      *testing.T
	e      *ensemble.Ensemble
	rng    *rand.Rand
	begin  time.Time
	starts map[*ensemble.Server]func() // of killed servers: gives the start up and waits until it is
}

// fault is something that is done to a server and undone after a while.
type fault struct {
	victim       *ensemble.Server
	name         string
	strike, heal func() error
}

// rage strikes and heals until the time is over, one or two servers at a time. With two the others have no majority.
// The schedule depends on the seed only, as far as it is not cut short.
func (c *chaos) rage(span time.Duration) {
	end := c.begin.Add(span)
	for {
		faults := c.faults()
		last := c.between(200*time.Millisecond, []time.Duration{time.Second, 4 * time.Second, 12 * time.Second}[c.rng.IntN(3)])
		gap := c.between(200*time.Millisecond, 3*time.Second)
		if !c.sleep(gap, end) {
			return
		}
		var names []string
		for _, f := range faults {
			if giveUp := c.starts[f.victim]; giveUp != nil {
				giveUp()
			}
			names = append(names, f.name)
			require.NoError(c.t, f.strike(), f.name)
		}
		c.logf("%s, for %v", strings.Join(names, " and "), last)
		goOn := c.sleep(last, end)
		for _, f := range faults {
			require.NoError(c.t, f.heal(), f.name)
		}
		if !goOn {
			return
		}
	}
}

// faults draws what happens to one server, or in one of four cases to two at a time.
func (c *chaos) faults() []fault {
	victims := c.e.Servers()
	c.rng.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	n := 1
	if c.rng.IntN(4) == 0 {
		n = 2
	}
	var faults []fault
	for _, s := range victims[:n] {
		switch c.rng.IntN(5) {
		case 0:
			faults = append(faults, c.death(s))
		case 1:
			faults = append(faults, fault{s, c.name(s) + " is frozen", s.Pause, s.Resume})
		default:
			faults = append(faults, c.cut(s))
		}
	}
	return faults
}

// death is SIGKILL and, after the while, a new start. Nobody waits until the server serves: killed at the wrong moment,
// real ones may take more than a minute until the others take them in.
func (c *chaos) death(s *ensemble.Server) fault {
	return fault{s, c.name(s) + " is dead", s.Kill, func() error {
		ctx, cancel := context.WithCancel(c.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := s.Start(ctx); err != nil && ctx.Err() == nil {
				c.logf("%v", err)
			}
		}()
		giveUp := func() { cancel(); <-done }
		c.starts[s] = giveUp
		c.t.Cleanup(giveUp)
		return nil
	}}
}

// cut has what is sent in one direction lost: from a server to all, to a server from all, or between it and another
// place only. Where connections cannot be cut the server is frozen, at the same draw.
func (c *chaos) cut(s *ensemble.Server) fault {
	places := append([]*ensemble.Server{nil}, c.e.Servers()...)
	peers := slices.DeleteFunc(places, func(p *ensemble.Server) bool { return p == s })
	if i := c.rng.IntN(2 * len(peers)); i < len(peers) {
		peers = peers[i : i+1]
	}
	away := c.rng.IntN(2) == 0
	if !c.e.Networks() {
		return fault{s, c.name(s) + " is frozen", s.Pause, s.Resume}
	}
	each := func(do func(from, to *ensemble.Server) error) func() error {
		return func() error {
			var errs []error
			for _, peer := range peers {
				if away {
					errs = append(errs, do(s, peer))
				} else {
					errs = append(errs, do(peer, s))
				}
			}
			return errors.Join(errs...)
		}
	}
	var names []string
	for _, peer := range peers {
		names = append(names, c.name(peer))
	}
	format := "%s hears nothing from %s"
	if away {
		format = "%s is not heard by %s"
	}
	return fault{s, fmt.Sprintf(format, c.name(s), strings.Join(names, ", ")), each(c.e.Cut), each(c.e.Heal)}
}

func (c *chaos) name(s *ensemble.Server) string {
	if s == nil {
		return "the clients"
	}
	return fmt.Sprintf("server %d", slices.Index(c.e.Servers(), s)+1)
}

func (c *chaos) between(low, high time.Duration) time.Duration {
	return (low + time.Duration(c.rng.Int64N(int64(high-low)))).Round(time.Millisecond)
}

// sleep sleeps, in real time, for the servers are real; until the end at most, and tells whether that has not come yet.
func (c *chaos) sleep(d time.Duration, end time.Time) bool {
	time.Sleep(min(d, time.Until(end)))
	return time.Now().Before(end)
}

func (c *chaos) logf(format string, args ...any) {
	c.t.Logf("%6.1fs  %s", time.Since(c.begin).Seconds(), fmt.Sprintf(format, args...))
}

var progressLine = regexp.MustCompile(`(?m)^  (\d+) rounds, `)

// progress is what the demo has shown of its rounds, a line every two seconds if there was one.
func (p *program) progress() [][]string {
	return progressLine.FindAllStringSubmatch(p.stderr.String(), -1)
}

func (p *program) roundsDone() int {
	if lines := p.progress(); len(lines) > 0 {
		n, _ := strconv.Atoi(lines[len(lines)-1][1])
		return n
	}
	return 0
}
