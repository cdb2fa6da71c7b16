package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
)

// network is a router and the places that it connects: network namespaces, each of which belongs to a thread of
// this process and ends with it and with what it has started. So nothing is left of them, however this
// process ends, and nobody else can see or reach them.
//
// Each place has a link of its own to the router, so everything from one place to another passes the router, which
// drops what is cut. Senders notice nothing but that nobody answers.
type network struct {
	router *parent
	places []*parent // by server id; the clients are at 0

	mu   sync.Mutex
	cuts map[[2]int]int // how often each is cut, by the places from and to
}

// ErrNoNetwork is returned where network namespaces cannot be had: on another system than Linux, or without
// the right to make them, which root usually has.
var ErrNoNetwork = errors.New("no network namespaces can be made")

// CanCut returns nil if [Config.Networks] can be used on this machine. Otherwise the error matches [ErrNoNetwork]
// or says what is missing and how to install it.
func CanCut() error {
	n, err := newNetwork(0)
	if n != nil {
		n.close()
	}
	return err
}

// address is that of a place.
func address(place int) string { return fmt.Sprintf("10.0.%d.2", place) }

func newNetwork(servers int) (_ *network, err error) {
	n := &network{cuts: map[[2]int]int{}}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if n.router, err = newParentIn(enterNetwork); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, fmt.Errorf("ensemble: %w; as root on Debian or Ubuntu run: apt-get update && apt-get install -y --no-install-recommends iproute2", err)
	}
	if err := n.router.do(forwardPackets); err != nil {
		return nil, fmt.Errorf("ensemble: %w", err)
	}
	for place := range servers + 1 {
		if err := n.join(place); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// join makes a place and its link to the router.
func (n *network) join(place int) error {
	var namespace string
	p, err := newParentIn(func() error {
		namespace = ownNetwork()
		return enterNetwork()
	})
	if err != nil {
		return err
	}
	n.places = append(n.places, p)
	return errors.Join(
		ip(n.router,
			fmt.Sprintf("link add to%d type veth peer name eth0 netns %s", place, namespace),
			fmt.Sprintf("addr add 10.0.%d.1/24 dev to%d", place, place),
			fmt.Sprintf("link set to%d up", place)),
		ip(p,
			"link set lo up",
			fmt.Sprintf("addr add %s/24 dev eth0", address(place)),
			"link set eth0 up",
			fmt.Sprintf("route add default via 10.0.%d.1", place)))
}

// ip runs commands of the program of that name in the namespace of p.
func ip(p *parent, commands ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	var said strings.Builder
	cmd.Stderr = &said
	if err := p.do(cmd.Start); err != nil {
		return fmt.Errorf("ensemble: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("ensemble: ip %s: %w: %s", strings.Join(commands, "; "), err, strings.TrimSpace(said.String()))
	}
	return nil
}

// ask is the function of that name where the clients are: a socket belongs to where it was made.
func (n *network) ask(ctx context.Context, addr, word string) (answer string, err error) {
	err = n.places[0].do(func() error {
		answer, err = ask(ctx, addr, word)
		return err
	})
	return answer, err
}

func (n *network) close() {
	for _, p := range append(n.places, n.router) {
		if p != nil {
			p.stop()
		}
	}
}

// StartClient is cmd.Start with the process where it can reach the servers: beside this process, or in the clients'
// network. On Linux the kernel kills it when this process dies, or when the ensemble is closed.
func (e *Ensemble) StartClient(cmd *exec.Cmd) error {
	p := e.parent
	if e.network != nil {
		p = e.network.places[0]
	}
	cmd.SysProcAttr = serverAttributes()
	return p.do(cmd.Start)
}

// DialContext opens a connection from where [Ensemble.StartClient] starts processes. The address has numbers, no
// names. One attempt waits for another, so an attempt at a server that the clients are cut off from holds all up.
func (e *Ensemble) DialContext(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	dial := func() error {
		conn, err = new(net.Dialer).DialContext(ctx, network, addr)
		return err
	}
	if e.network == nil {
		return conn, dial()
	}
	return conn, e.network.places[0].do(dial) // a socket belongs to where it was made
}

// Networks reports whether the servers are in networks of their own.
func (e *Ensemble) Networks() bool { return e.network != nil }

// Cut has everything that is sent from one server to another lost on its way, from now on and until [Ensemble.Heal];
// not what is sent back. nil stands for the clients. What was cut twice has to be healed twice. It is an error without
// [Config.Networks].
func (e *Ensemble) Cut(from, to *Server) error {
	return e.cut(from, to, func(cuts int) (int, string) {
		if cuts == 0 {
			return 1, "add"
		}
		return cuts + 1, ""
	})
}

// Heal ends a Cut.
func (e *Ensemble) Heal(from, to *Server) error {
	return e.cut(from, to, func(cuts int) (int, string) {
		if cuts == 1 {
			return 0, "del"
		}
		return max(cuts-1, 0), ""
	})
}

// cut changes how often a direction is cut, and the router's rules if that says with which verb.
func (e *Ensemble) cut(from, to *Server, change func(cuts int) (after int, verb string)) error {
	n := e.network
	if n == nil {
		return errors.New("ensemble: the servers have no networks of their own")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	way := [2]int{place(from), place(to)}
	after, verb := change(n.cuts[way])
	if verb != "" {
		if err := ip(n.router, fmt.Sprintf("rule %s pref 100 iif to%d to %s blackhole", verb, way[0], address(way[1]))); err != nil {
			return err
		}
	}
	n.cuts[way] = after
	return nil
}

func place(s *Server) int {
	if s == nil {
		return 0
	}
	return s.id
}
