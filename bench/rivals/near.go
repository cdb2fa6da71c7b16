package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-menagerie/menagerie/bench"
	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

// place is a server at which the clients of a peer are, all of them.
type place struct{ name, server string }

// target is the servers of a run.
type target struct {
	servers string
	kind    string // what they are, for the report
	places  []place
	close   func()
}

// begin starts the servers, unless they are given.
func (o options) begin(ctx context.Context) (*target, error) {
	t := &target{servers: o.servers, close: func() {}}
	if o.servers != "" {
		if o.ensemble != 1 || o.near != "" {
			return nil, errors.New("--servers names the servers, so --ensemble and --near make no sense")
		}
		return t, nil
	}
	if o.near != "" && o.ensemble == 1 {
		return nil, errors.New("--near needs --ensemble 3: one server leads itself")
	}
	for _, name := range list(o.near) {
		if name != leader && name != follower {
			return nil, fmt.Errorf("no place %s: there are %s, %s", name, leader, follower)
		}
	}
	e, err := ensemble.Start(ctx, ensemble.Config{Servers: o.ensemble, ForceSync: true})
	if err != nil {
		return nil, err
	}
	t.servers, t.close = e.Connect(), func() { _ = e.Close() } // it ends all the same
	t.kind = " with one server and its log synced"
	if o.ensemble > 1 {
		t.kind = fmt.Sprintf(" with %d servers and their logs synced", o.ensemble)
	}
	t.places, err = places(ctx, e, list(o.near))
	if err != nil {
		t.close()
	}
	return t, err
}

// Where the clients can be.
const (
	leader   = "leader"
	follower = "follower"
)

func places(ctx context.Context, e *ensemble.Ensemble, names []string) (all []place, err error) {
	for _, name := range names {
		led, err := e.Leader(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range e.Servers() {
			if (s == led) == (name == leader) {
				all = append(all, place{name, s.Addr()})
				break
			}
		}
	}
	return all, nil
}

// near are the peers with all their clients at each of the places in turn, in the same run: or as they are, if no place is named.
func (t *target) near(peers []bench.Peer) []bench.Peer {
	if len(t.places) == 0 {
		return peers
	}
	var all []bench.Peer
	for _, p := range peers {
		for _, at := range t.places {
			all = append(all, placed{p, at})
		}
	}
	return all
}

// placed is a peer whose clients are at one server of several.
type placed struct {
	bench.Peer
	at place
}

func (p placed) Name() string { return p.Peer.Name() + "@" + p.at.name }

// Run finds the node of the slice also at a follower: to begin a session is a write, which a follower has only after the writes before it.
func (p placed) Run(ctx context.Context, s bench.Slice) (bench.Sample, error) {
	s.Servers = p.at.server
	return p.Peer.Run(ctx, s)
}
