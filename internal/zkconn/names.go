package zkconn

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// resolver finds the addresses of the servers of one client, for all its epochs. A name may have several, as the name of
// a headless service has. A look-up has no limit of its own, and goes on while other servers are dialled: a slow name
// server must not make attempts fail. If it fails, the addresses of the last look-up still count.
type resolver struct {
	*shared
	servers []string // without duplicates

	mu    sync.Mutex
	found map[string][]string  // the addresses of each server
	since map[string]time.Time // when the look-ups that run have begun
	err   error                // of the newest look-up that failed
	news  chan struct{}        // closed and replaced when a look-up has ended
}

func newResolver(s *shared) *resolver {
	n := &resolver{shared: s, found: map[string][]string{}, since: map[string]time.Time{}, news: make(chan struct{})}
	for _, s := range n.cfg.Servers {
		if !slices.Contains(n.servers, s) {
			n.servers = append(n.servers, s)
		}
		if n.cfg.Resolve == nil || numeric(s) {
			n.found[s] = []string{s}
		}
	}
	return n
}

// numeric reports whether the host of a server is an address already.
func numeric(server string) bool {
	host, _, _ := net.SplitHostPort(server)
	_, err := netip.ParseAddr(host)
	return err == nil
}

// known are the addresses that are known.
func (n *resolver) known() (all []target) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.servers {
		for _, a := range n.found[s] {
			all = append(all, target{server: s, address: a})
		}
	}
	return all
}

// find looks all names up. It waits until each has been answered or, if there is an address to begin with, for patience
// at most. It returns early, with an error, when end is closed. If it finds none at all, there is always an error, which says why.
func (n *resolver) find(end <-chan struct{}, patience time.Duration) ([]target, error) {
	n.begin()
	patient := time.NewTimer(patience)
	defer patient.Stop()
	for late := false; ; {
		n.mu.Lock()
		news, err := n.news, n.err
		waiting, since := n.waiting()
		n.mu.Unlock()
		all := n.known() // no older than what is waited for
		switch {
		case len(waiting) == 0 && len(all) == 0 && err == nil:
			return nil, ErrClosed // no look-up has ever ended, and none may begin any more: see begin
		case len(waiting) == 0, late && len(all) > 0:
			return all, err
		}
		n.dials.trying("", "looking up "+strings.Join(waiting, ", ")+" takes", guessName, since)
		select {
		case <-news:
		case <-patient.C:
			late = true
		case <-end:
			return nil, ErrOver
		}
	}
}

// waiting are the names whose look-ups run, and when the first of these has begun. mu is held.
func (n *resolver) waiting() (slow []string, first time.Time) {
	for _, s := range n.servers {
		t, runs := n.since[s]
		if !runs {
			continue
		}
		slow = append(slow, target{server: s}.host())
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	return slow, first
}

// begin starts a look-up of each name, unless one runs.
func (n *resolver) begin() {
	if n.cfg.Resolve == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.servers {
		if _, runs := n.since[s]; runs || numeric(s) {
			continue
		}
		began := time.Now()
		if n.Go(func() { n.lookUp(s, began) }) { // false once Close has begun; then no answer is of use
			n.since[s] = began
		}
	}
}

// lookUp looks one name up.
func (n *resolver) lookUp(server string, began time.Time) {
	ctx := n.running
	host, port, _ := net.SplitHostPort(server)
	list, err := n.cfg.Resolve(ctx, host)
	var addresses []string
	for _, a := range list {
		if a = net.JoinHostPort(a, port); !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	if err != nil {
		err = diagnoseLookUp(err, host, time.Since(began))
	}
	if ctx.Err() == nil { // else the end of the client is why it failed
		n.dials.lookedUp(server, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err = err; err == nil {
		n.found[server] = addresses
	}
	delete(n.since, server)
	close(n.news)
	n.news = make(chan struct{})
}
