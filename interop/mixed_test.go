package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/go-menagerie/menagerie/zkwatch"
)

// inherited, if it is set, makes this program one with our half of the system, which can be killed: it holds the servers, and the
// address of the witness of each pair. Without those the program keeps a node.
const inherited = "MENAGERIE_INTEROP_HALF"

func TestMain(m *testing.M) {
	if line := os.Getenv(inherited); line != "" {
		fmt.Println(serveHalf(strings.Fields(line)))
		os.Exit(1)
	}
	var err error
	if classes, err = os.MkdirTemp("", "interop"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(classes)
	os.Exit(code)
}

// pair is one path that both halves may use at the same time.
type pair struct {
	path    string
	curator string // its kind, and what belongs to it besides the path
	second  string
	letters string // of Curator's steady contender, its doomed one, and ours likewise
	ours    func(s *zksync.Session, path string) func(ctx context.Context, inside func(context.Context) error) error
}

var pairs = []pair{
	{path: "/mixed/mutex", curator: "mutex", letters: "ABCD", ours: ourMutex},
	{path: "/mixed/rw", curator: "write", letters: "ABCD", ours: ourWriter},
	{path: "/mixed/rw", curator: "read", letters: "abcd", ours: ourReader},
	{path: "/mixed/multi-a", curator: "multi", second: "/mixed/multi-b", letters: "ABCD", ours: ourMulti},
	{path: "/mixed/order-b", curator: "multi", second: "/mixed/order-a", letters: "ABCD", ours: ourMultiInOrder},
	{path: "/mixed/election", curator: "selector", letters: "ABCD", ours: ourElection},
}

// leased is the function of a Do that only needs the context.
func leased(inside func(context.Context) error) func(context.Context, *zksync.Lease) error {
	return func(ctx context.Context, _ *zksync.Lease) error { return inside(ctx) }
}

func ourMutex(s *zksync.Session, path string) func(context.Context, func(context.Context) error) error {
	m := zksync.NewMutex(s, path)
	return func(ctx context.Context, inside func(context.Context) error) error { return m.Do(ctx, leased(inside)) }
}

func ourWriter(s *zksync.Session, path string) func(context.Context, func(context.Context) error) error {
	rw := zkrwmutex.New(s, path)
	return func(ctx context.Context, inside func(context.Context) error) error { return rw.Do(ctx, leased(inside)) }
}

func ourReader(s *zksync.Session, path string) func(context.Context, func(context.Context) error) error {
	rw := zkrwmutex.New(s, path)
	return func(ctx context.Context, inside func(context.Context) error) error {
		return rw.RDo(ctx, leased(inside))
	}
}

func ourMulti(s *zksync.Session, path string) func(context.Context, func(context.Context) error) error {
	return doAll(zksync.MultiLock(zksync.NewMutex(s, path), zksync.NewMutex(s, strings.Replace(path, "-a", "-b", 1))))
}

func ourMultiInOrder(s *zksync.Session, path string) func(context.Context, func(context.Context) error) error {
	return doAll(zksync.MultiLockInOrder(zksync.NewMutex(s, path), zksync.NewMutex(s, strings.Replace(path, "-b", "-a", 1))))
}

func doAll(m *zksync.Multi) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, inside func(context.Context) error) error {
		return m.Do(ctx, func(ctx context.Context, _ zksync.Leases) error { return inside(ctx) })
	}
}

func ourElection(s *zksync.Session, path string) func(context.Context, func(context.Context) error) error {
	e := zkelection.New(s, path, zkelection.Candidate{ID: "go"})
	return func(ctx context.Context, inside func(context.Context) error) error {
		l, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		defer l.Unlock()
		return inside(l.Context())
	}
}

// contend goes in and out until ctx ends.
func (p pair) contend(ctx context.Context, s *zksync.Session, addr string, who rune) error {
	do := p.ours(s, p.path)
	for {
		err := do(ctx, func(ctx context.Context) error { return visit(ctx, addr, who) })
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %c: %w", p.path, who, err)
		}
	}
}

// ourTimeout is the timeout of a session of ours that is killed: the others wait for it.
const ourTimeout = 6 * time.Second

// serveHalf contends on all pairs until the process is killed.
func serveHalf(words []string) error {
	ctx := context.Background()
	s, err := zksync.Connect(ctx, words[0], zksync.WithTimeout(ourTimeout))
	if err != nil {
		return err
	}
	ended := make(chan error, len(pairs))
	if len(words) == 1 {
		k := zkwatch.Keep(s, "/view/ours", []byte("go"))
		<-k.Done()
		return k.Err()
	}
	for i, p := range pairs {
		go func() { ended <- p.contend(ctx, s, words[1+i], rune(p.letters[3])) }()
	}
	return <-ended
}

// Each of the two libraries has a process that stays, and one that is killed while it is inside.
func TestBothHalvesShareTheirPathsWhileProcessesAreKilled(t *testing.T) {
	t.Parallel()
	peers(t)
	for name, start := range targets {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shareWhileKilled(t, start(t))
		})
	}
}

// targets are the kinds of servers that a test with both halves runs on.
var targets = map[string]func(t *testing.T) target{
	"zktest":    func(t *testing.T) target { return newFake(t, zktest.WithLeftovers()) },
	"ZooKeeper": func(t *testing.T) target { return newGenuine(t) },
}

func shareWhileKilled(t *testing.T, on target) {
	var witnesses []*witness
	var addrs []string
	for range pairs {
		w := newWitness(t)
		witnesses, addrs = append(witnesses, w), append(addrs, w.addr())
	}
	witnesses[2], addrs[2] = witnesses[1], addrs[1] // readers and writers are one pair
	each := func(f func(i int, p pair, w *witness)) {
		for i, p := range pairs {
			f(i, p, witnesses[i])
		}
	}
	contend := func(h *half, letter int) (expire []func() error) {
		each(func(i int, p pair, w *witness) {
			peer := h.open(p.curator, p.path, p.second)
			expire = append(expire, peer.session())
			peer.start("contend", fmt.Sprintf("%s,%c,1000000000", w.addr(), p.letters[letter]))
		})
		return expire
	}

	ctx, cancel := context.WithCancel(t.Context())
	var steady sync.WaitGroup
	defer steady.Wait()
	defer cancel()
	s, err := zksync.Connect(ctx, on.addr(), zksync.WithTimeout(lifetime))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	each(func(i int, p pair, w *witness) {
		steady.Go(func() {
			if err := p.contend(ctx, s, w.addr(), rune(p.letters[2])); err != nil {
				t.Error(err)
			}
		})
	})
	contend(startHalf(t, on), 0)
	theirs := startHalf(t, on)
	expire := contend(theirs, 1)
	ours := exec.CommandContext(t.Context(), os.Args[0])
	ours.Env = append(os.Environ(), inherited+"="+on.addr()+" "+strings.Join(addrs, " "))
	require.NoError(t, ours.Start())

	each(func(_ int, p pair, w *witness) { w.goesOn(3, p.letters) })
	each(func(_ int, p pair, w *witness) { keepWriter(p, w, 1) })
	theirs.kill()
	each(func(_ int, p pair, w *witness) { w.isOut(rune(p.letters[1])) })
	for _, f := range expire {
		require.NoError(t, f())
	}
	each(func(_ int, p pair, w *witness) { w.goesOn(3, p.letters[:1]+p.letters[2:]) })
	each(func(_ int, p pair, w *witness) { keepWriter(p, w, 3) })
	require.NoError(t, ours.Process.Kill())
	_ = ours.Wait()
	each(func(_ int, p pair, w *witness) { w.isOut(rune(p.letters[3])) })
	each(func(_ int, p pair, w *witness) { w.goesOn(3, p.letters[:1]+p.letters[2:3]) })
}

// keepWriter keeps a doomed contender inside. Readers are not kept: they share their witness with the writers.
func keepWriter(p pair, w *witness, letter int) {
	if p.curator != "read" {
		w.keep(rune(p.letters[letter]))
	}
}
