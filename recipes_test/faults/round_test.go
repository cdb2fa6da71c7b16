package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// errand is a small use of one type, or of one option, by two clients. It is run on every kind of server.
type errand struct {
	name  string
	run   func(r *round)
	after func(r *round) // looks at what is left with a client of its own, r.last; may be nil
	least int            // requests that it makes without a blow, or more
}

// host is what a kind of server consists of: one server or an ensemble.
type host interface {
	Session(t zktest.TB, opts ...zksync.SessionOption) *zksync.Session
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	InterceptFunc(f func(*zktest.Request) zktest.Verdict) (remove func())
	Disconnect(id int64) bool
	Expire(id int64) bool
}

// round is one run of an errand.
type round struct {
	t        testing.TB
	host     host
	ens      *zktest.Ensemble // nil for one server
	kind     kindOfServer
	blow     blow
	a, b     *hand
	last     *hand
	made     atomic.Int32 // requests
	fired    atomic.Int32
	running  sync.WaitGroup
	began    time.Time
	closed   atomic.Int64 // until when connections are closed as soon as they are accepted, by began
	accepted atomic.Int32
	striking atomic.Bool
	ended    atomic.Bool // whatever goes on beside the errand ends, too
	healing  sync.WaitGroup
	mu       sync.Mutex
	inside   []*zksync.Lease
	tokens   []zksync.Token
	wrongs   []string
	struckOp string
	check    func() // looks at the end, see checks
}

// hand is one client of a round.
type hand struct {
	r *round
	s *zksync.Session

	mu      sync.Mutex
	cancels map[*pending]struct{}
}

type pending struct {
	cancel    context.CancelFunc
	cancelled bool
}

// play runs the errand, with a blow at the nth request; 0 for none.
func (e errand) play(t *testing.T, kind kindOfServer, b blow, nth int) (made int, fired bool) {
	synctest.Test(t, func(t *testing.T) {
		r := &round{t: t, kind: kind, blow: b}
		kind.open(r)
		r.a, r.b = r.hand(0), r.hand(1)
		r.began = time.Now()
		remove := r.host.InterceptFunc(func(q *zktest.Request) zktest.Verdict {
			if !proving.Counts(q) || !r.striking.Load() || int(r.made.Add(1)) != nth {
				return zktest.Verdict{}
			}
			r.fired.Add(1)
			r.struckOp = fmt.Sprint(q)
			b.strike(r, q.Session)
			return b.Verdict
		})
		r.striking.Store(true)
		e.run(r)
		r.finish()
		r.striking.Store(false)
		r.ended.Store(true)
		remove()
		r.healing.Wait()
		r.last = r.hand(1)
		if e.after != nil && !r.over() {
			e.after(r)
		}
		if r.check != nil && !r.over() {
			r.check()
		}
		r.close()
		require.Empty(t, r.wrongs, "%s", lazily(r.tale))
		made, fired = int(r.made.Load()), r.fired.Load() > 0
	})
	return made, fired
}

// hand connects a client; to an ensemble, at that member first.
func (r *round) hand(member int) *hand {
	h := &hand{r: r, cancels: make(map[*pending]struct{})}
	next := atomic.Int32{}
	next.Store(int32(2 * member))
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if r.closes() {
			return closedAtOnce(), nil
		}
		if r.ens != nil {
			all := r.ens.Servers()
			addr = all[int(next.Add(1)-1)%len(all)]
		}
		return r.host.DialContext(ctx, network, addr)
	}
	h.s = r.host.Session(r.t, zksync.WithDialer(dial), zksync.WithTimeout(timeout))
	return h
}

// over reports whether the servers have refused one of the clients for good. Then its calls fail, and the others may wait
// in vain.
func (r *round) over() bool { return r.blow.final && r.fired.Load() > 0 }

// closes reports whether the servers close the next connection as soon as they have accepted it.
func (r *round) closes() bool {
	if r.kind.limits && r.accepted.Add(1)%2 == 0 {
		return true
	}
	return !r.began.IsZero() && int64(time.Since(r.began)) < r.closed.Load()
}

func closedAtOnce() net.Conn {
	mine, theirs := net.Pipe()
	_ = theirs.Close()
	return mine
}

// party starts a goroutine of the errand.
func (r *round) party(start time.Duration, f func()) {
	r.running.Go(func() {
		time.Sleep(start)
		f()
	})
}

// finish waits for all parties.
func (r *round) finish() {
	done := make(chan struct{})
	go func() { r.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(stuck):
		r.t.Fatalf("somebody still waits\n%s", r.tale())
	}
}

// close ends the sessions. Nothing of them is left when those that could not end in time have.
func (r *round) close() {
	for _, h := range []*hand{r.a, r.b, r.last} {
		require.NoError(r.t, h.s.Close())
	}
	time.Sleep(2*timeout + slack)
	srv, ok := r.host.(*zktest.Server)
	if !ok {
		srv = r.ens.Server(r.ens.Leader())
	}
	for path, n := range srv.Snapshot("/") {
		if n.Stat.EphemeralOwner != 0 {
			r.wrong("%s is left behind", path)
		}
	}
}

func (r *round) wrong(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrongs = append(r.wrongs, fmt.Sprintf("%v: ", time.Since(r.began))+fmt.Sprintf(format, args...))
}

func (r *round) tale() string {
	text := fmt.Sprintf("%s, %s: struck %s\n", r.kind.name, r.blow.Name, r.struckOp)
	var logs []zktest.Request
	if srv, ok := r.host.(*zktest.Server); ok {
		logs = srv.Log()
	} else {
		for i := range r.ens.Len() {
			logs = append(logs, r.ens.Server(i).Log()...)
		}
		slices.SortStableFunc(logs, func(a, b zktest.Request) int { return a.Time.Compare(b.Time) })
	}
	var lines strings.Builder
	for _, q := range logs {
		if proving.Counts(&q) || q.Op == zktest.Connect {
			fmt.Fprintf(&lines, "%v %s\n", q.Time.Sub(r.began), q)
		}
	}
	return text + lines.String()
}

// does makes one call. It comes back in time, with no error but those that the blow explains, and fine ones.
func (h *hand) does(what string, f func(ctx context.Context) error, fine ...error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	p := &pending{cancel: cancel}
	h.mu.Lock()
	h.cancels[p] = struct{}{}
	h.mu.Unlock()
	began := time.Now()
	err := f(ctx)
	h.mu.Lock()
	delete(h.cancels, p)
	cancelled := p.cancelled
	h.mu.Unlock()
	switch took := time.Since(began); {
	case took > patient+slack:
		h.r.wrong("%s came back after %v", what, took)
	case err == nil, slices.ContainsFunc(fine, func(target error) bool { return errors.Is(err, target) }):
	case cancelled && errors.Is(err, context.Canceled):
	case h.r.blow.Deadly && (errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrSessionExpired)):
	case h.r.over():
	case h.r.blow.refuses && !errors.Is(err, context.DeadlineExceeded):
	default:
		h.r.wrong("%s: %v", what, err)
	}
	if err != nil {
		time.Sleep(5 * ms) // so that time passes for who tries again
	}
	return err
}

// until makes a call until it succeeds: what a blow has spoilt is spoilt once.
func (h *hand) until(what string, f func(ctx context.Context) error, fine ...error) {
	for _, pause := range []time.Duration{5 * ms, 50 * ms, 500 * ms, soon + again, 0} {
		if h.does(what, f, fine...) == nil || h.r.over() {
			return
		}
		time.Sleep(pause)
	}
	h.r.wrong("%s does not succeed", what)
}

// cancel ends the contexts of the client's calls.
func (h *hand) cancel() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.cancels {
		p.cancelled = true
		p.cancel()
	}
}

// enters has somebody hold, beside less than most others.
func (r *round) enters(l *zksync.Lease, most int) {
	r.mu.Lock()
	others := slices.Clone(r.inside)
	r.inside = append(r.inside, l)
	if most == 1 && !r.blow.Deadly {
		for _, before := range r.tokens {
			if l.Token().Compare(before) <= 0 {
				r.wrongs = append(r.wrongs, fmt.Sprintf("token %v after %v", l.Token(), before))
			}
		}
	}
	r.tokens = append(r.tokens, l.Token())
	r.mu.Unlock()
	valid := func() (n int) {
		for _, o := range others {
			if o.Valid() {
				n++
			}
		}
		return n
	}
	if r.blow.Deadly && valid() >= most {
		time.Sleep(slack + behind) // nobody can tell in time of the end of a session that the servers had just heard of
	}
	if valid() >= most && l.Valid() {
		r.wrong("%d hold beside %v", valid(), l.Token())
	}
}

func (r *round) leaves(l *zksync.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside = slices.DeleteFunc(r.inside, func(o *zksync.Lease) bool { return o == l })
}

// holds is one hold: get, hold for a while or until it is lost, give back.
func (h *hand) holds(what string, most int, d time.Duration, get func(ctx context.Context) (*zksync.Lease, error)) {
	var l *zksync.Lease
	err := h.does(what, func(ctx context.Context) (err error) { l, err = get(ctx); return err })
	if err != nil {
		return
	}
	h.r.enters(l, most)
	select {
	case <-l.Done():
	case <-time.After(d):
	}
	h.r.leaves(l)
	_ = h.does(what+" ends", func(context.Context) error { return l.Unlock() }, zksync.ErrLost, zksync.ErrMaxHold)
}
