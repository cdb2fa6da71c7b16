package zkshard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkshard"
	"github.com/go-menagerie/menagerie/zksync"
)

// config is what a process is started with.
type config struct{ to, from string }

func (c config) String() string {
	if c.from == "" {
		return c.to
	}
	return c.from + " -> " + c.to
}

// oracle knows who holds which name, by true time.
type oracle struct {
	mu     sync.Mutex
	held   map[string][]*grant
	grants map[string]int // by the kind of process
	bad    []string
}

type grant struct {
	p      *process
	leases zksync.Leases
}

// granted notes a grant. Of two holds that overlap, the later one finds the other.
func (o *oracle) granted(name string, g *grant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !g.leases.Valid() {
		return
	}
	o.grants[g.p.kind]++
	var now []*grant
	for _, h := range o.held[name] {
		if h.p.killed || !h.leases.Valid() {
			continue
		}
		o.bad = append(o.bad, fmt.Sprintf("%s: %s and %s hold", name, h.p, g.p))
		now = append(now, h)
	}
	o.held[name] = append(now, g)
}

// process is one with a network of its own.
type process struct {
	w      *storm
	n      int
	kind   string // "old", "moving", "new", or what a rogue is
	c      config
	s      *zkshard.Shards
	stop   context.CancelFunc
	work   sync.WaitGroup
	killed bool // under oracle.mu

	mu  sync.Mutex
	cut map[string]int // hosts that it cannot reach
}

func (p *process) String() string { return fmt.Sprintf("%s %d (%s)", p.kind, p.n, p.c) }

func (p *process) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, ":")
	p.mu.Lock()
	refused := p.cut[host] > 0
	p.mu.Unlock()
	if refused {
		return nil, errors.New("cut off")
	}
	return p.w.dial(ctx, network, address)
}

// cutOff makes the network to a host a black hole.
func (p *process) cutOff(host string) (heal func()) {
	p.mu.Lock()
	p.cut[host]++
	p.mu.Unlock()
	again := func() {}
	for servers, s := range p.s.All() {
		if id := s.ID(); servers == host && id != 0 {
			again = p.w.srvs[host].Partition(id)
		}
	}
	return func() {
		p.mu.Lock()
		p.cut[host]--
		p.mu.Unlock()
		again()
	}
}

// kill ends the process without a farewell.
func (p *process) kill() {
	p.w.o.mu.Lock()
	p.killed = true
	p.w.o.mu.Unlock()
	for servers := range p.s.All() {
		p.cutOff(servers)
	}
	p.stop()
}

func (p *process) end() {
	p.stop()
	p.work.Wait()
	_ = p.s.Close()
}

// storm is a world in which processes come, go and lose connections.
type storm struct {
	*world
	*rand.Rand
	o *oracle

	mu  sync.Mutex
	n   int
	all []*process // that live
}

var names = []string{"/p0", "/p1", "/p2", "/p3", "/p4"}

// start starts a process, again and again while it is refused, as a supervisor would.
func (w *storm) start(ctx context.Context, kind string, c config, tries int) *process {
	for range tries {
		w.mu.Lock()
		w.n++
		p := &process{w: w, n: w.n, kind: kind, c: c, cut: make(map[string]int)}
		w.mu.Unlock()
		brief, cancel := context.WithTimeout(ctx, 2*time.Minute)
		s, err := w.try(brief, c.to, c.from, zksync.WithDialer(p.dial))
		cancel()
		if err == nil {
			p.s = s
			p.run()
			return p
		}
		if !errors.Is(err, zksync.ErrMisuse) && !errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			w.t.Errorf("%s: %v", p, err)
		}
		time.Sleep(3 * time.Second)
	}
	return nil
}

func (p *process) run() {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	w := p.w
	w.mu.Lock()
	w.all = append(w.all, p)
	w.mu.Unlock()
	for i := range 2 {
		r := rand.New(rand.NewPCG(uint64(p.n), uint64(i)))
		p.work.Go(func() {
			for ctx.Err() == nil {
				name := names[r.IntN(len(names))]
				brief, cancel := context.WithTimeout(ctx, 20*time.Second)
				leases, err := p.s.NewMutex(name).LockContext(brief)
				cancel()
				if err == nil {
					w.o.granted(name, &grant{p, leases})
					pause(ctx, time.Duration(r.IntN(3000))*time.Millisecond)
					_ = leases.Unlock()
				}
				pause(ctx, time.Duration(100+r.IntN(2000))*time.Millisecond)
			}
		})
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (w *storm) gone(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, x := range w.all {
		if x == p {
			w.all = append(w.all[:i], w.all[i+1:]...)
			return
		}
	}
}

// weather is one fault after the other until ctx ends.
func (w *storm) weather(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, time.Duration(1000+r.IntN(6000))*time.Millisecond)
		w.mu.Lock()
		all := append([]*process{}, w.all...)
		w.mu.Unlock()
		host := string(rune('a' + r.IntN(len(w.srvs))))
		switch k := r.IntN(6); {
		case k == 0:
			thaw := w.srvs[host].Freeze()
			pause(ctx, time.Duration(r.IntN(25))*time.Second)
			thaw()
		case k == 1:
			w.srvs[host].Stop()
			pause(ctx, time.Duration(r.IntN(25))*time.Second)
			w.srvs[host].Restart()
		case len(all) == 0:
		case k == 2:
			for host, s := range all[r.IntN(len(all))].s.All() {
				for _, live := range w.srvs[host].Sessions() {
					_ = live.ID == s.ID() && w.srvs[host].Disconnect(live.ID)
				}
			}
		default:
			heal := all[r.IntN(len(all))].cutOff(host)
			time.AfterFunc(time.Duration(1+r.IntN(50))*time.Second, heal)
		}
	}
}

func playStorm(t *testing.T, seed uint64, f func(w *storm)) {
	play(t, 3, func(t *testing.T, small *world) {
		w := &storm{world: small, Rand: rand.New(rand.NewPCG(seed, 0)), o: &oracle{held: make(map[string][]*grant), grants: make(map[string]int)}}
		f(w)
		var all sync.WaitGroup
		for _, p := range w.all {
			all.Go(p.end)
		}
		all.Wait()
		w.o.mu.Lock()
		defer w.o.mu.Unlock()
		require.Empty(w.t, w.o.bad, "seed %d", seed)
	})
}

// rollout replaces one process after the other.
func (w *storm) rollout(ctx context.Context, kind string, c config, slots []*process) {
	for i, p := range slots {
		if p != nil {
			if w.IntN(2) == 0 {
				p.kill()
			} else {
				w.gone(p)
				p.end()
			}
		}
		slots[i] = w.start(ctx, kind, c, 100)
		assert.NotNil(w.t, slots[i], "%s does not start", c)
		time.Sleep(time.Duration(w.IntN(20)) * time.Second)
	}
}

// rogues start processes at any time, with any of these lists, whatever the rollout is at. Some are killed.
func (w *storm) rogues(ctx context.Context, r *rand.Rand, of ...config) {
	for ctx.Err() == nil {
		c := of[r.IntN(len(of))]
		if p := w.start(ctx, "rogue", c, 1); p != nil {
			pause(ctx, time.Duration(r.IntN(30))*time.Second)
			if r.IntN(2) == 0 {
				p.kill()
			} else {
				w.gone(p)
				p.end()
			}
		}
		pause(ctx, time.Duration(r.IntN(15))*time.Second)
	}
}

// moves are lists of which one is added, removed and replaced.
var moves = [][2]string{{"a b", "b c"}, {"a b", "a b c"}, {"a b c", "c"}, {"a", "b"}, {"a b", "b"}}

func share(move [2]string) bool {
	return slices.ContainsFunc(list(move[0]), func(x string) bool { return slices.Contains(list(move[1]), x) })
}

// seeds is how many plays there are: SHARD_SEEDS, or n, or fewer for the race detector.
func seeds(n uint64) uint64 {
	if all, err := strconv.ParseUint(os.Getenv("SHARD_SEEDS"), 10, 64); err == nil {
		return all
	}
	if testing.Short() {
		return max(n/5, 1)
	}
	return n
}

// Whatever dies or is cut off during the two rollouts, they end, and no name has two holders.
func TestAcceptance215RolloutsInAStorm(t *testing.T) {
	for seed := range seeds(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			playStorm(t, seed, func(w *storm) {
				ctx, cancel := context.WithCancel(context.Background())
				move := moves[seed%uint64(len(moves))]
				old, moving, fresh := config{move[0], ""}, config{move[1], move[0]}, config{move[1], ""}
				slots := make([]*process, 3)
				w.rollout(ctx, "old", old, slots)
				var all sync.WaitGroup
				all.Go(func() { w.weather(ctx, rand.New(rand.NewPCG(seed, 1))) })
				rogues := func() { w.rogues(ctx, rand.New(rand.NewPCG(seed, 2)), old, moving, fresh) }
				if share(move) {
					all.Go(rogues)
				}
				w.rollout(ctx, "moving", moving, slots[:1])
				if !share(move) { // nothing tells a process with only new ensembles of the old ones before that
					all.Go(rogues)
				}
				w.rollout(ctx, "moving", moving, slots[1:])
				w.rollout(ctx, "new", fresh, slots)
				cancel()
				all.Wait()
				pause(context.Background(), time.Minute) // it is calm, so the last ones must get locks, of each name
				w.o.mu.Lock()
				defer w.o.mu.Unlock()
				assert.Positive(w.t, min(w.o.grants["old"], w.o.grants["moving"], w.o.grants["new"]))
			})
		})
	}
}

// Here any process may start at any time, also those that move back or elsewhere.
func TestAcceptance215AnyMixtureOfListsInAStorm(t *testing.T) {
	lists := []string{"a b", "b c", "a c", "a b c"} // each two share one: without that, processes know nothing of each other
	var of []config
	for _, to := range lists {
		of = append(of, config{to, ""})
		for _, from := range lists {
			if from != to {
				of = append(of, config{to, from})
			}
		}
	}
	for seed := range seeds(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			playStorm(t, 1000+seed, func(w *storm) {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
				defer cancel()
				first := w.start(ctx, "first", of[0], 1)
				go func() {
					pause(ctx, time.Minute)
					w.gone(first)
					first.end()
				}()
				var all sync.WaitGroup
				all.Go(func() { w.weather(ctx, rand.New(rand.NewPCG(seed, 1))) })
				for i := range uint64(4) {
					all.Go(func() { w.rogues(ctx, rand.New(rand.NewPCG(seed, 2+i)), of...) })
				}
				all.Wait()
			})
		})
	}
}
