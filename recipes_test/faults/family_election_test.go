package faults_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
)

// stand names the same election through a client's session.
func stand(c *client) *zkelection.Election {
	return zkelection.New(c.s, lockDir, zkelection.Candidate{ID: fmt.Sprintf("client %d", c.index), Data: []byte{byte(c.index)}})
}

func useElection(t testing.TB, s *zksync.Session) {
	ctx := context.Background()
	e := stand(&client{s: s})
	_, err := e.Leader(ctx)
	require.ErrorIs(t, err, zksync.ErrNoLeader)
	l, err := e.TryCampaign(ctx)
	require.NoError(t, err)
	list, err := e.Candidates(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, l.Node(), list[0].Node)
	require.Equal(t, l.Token(), list[0].Token)
	require.NoError(t, l.Unlock())
}

// audience is somebody who watches who leads.
type audience struct {
	k    *kin
	stop context.CancelFunc
	done chan struct{}

	mu   sync.Mutex
	seen []zkelection.Candidate // those that led, in order
	none bool                   // nobody leads, by the newest event
	err  error
}

// watch observes from now on, until attended.
func (k *kin) watch(c *client) *audience {
	ctx, stop := context.WithCancel(context.Background())
	a := &audience{k: k, stop: stop, done: make(chan struct{})}
	e := stand(c)
	go func() {
		defer close(a.done)
		for who, err := range e.Observe(ctx) {
			a.hears(who, err)
		}
	}()
	return a
}

func (a *audience) hears(who zkelection.Candidate, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case errors.Is(err, zksync.ErrNoLeader):
		a.none = true
		return
	case err != nil:
		a.err = err
		return
	}
	if n := len(a.seen); n > 0 && who.Token.Compare(a.seen[n-1].Token) <= 0 {
		a.k.wrong("observed %s after %s", who.Node, a.seen[n-1].Node)
	}
	if want := fmt.Sprintf("client %d", who.Data[0]); who.ID != want {
		a.k.wrong("observed %s with the data of %s", who.ID, want)
	}
	a.seen, a.none = append(a.seen, who), false
}

// leads is the node of whoever leads, by the newest event.
func (a *audience) leads() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.none || len(a.seen) == 0 {
		return ""
	}
	return a.seen[len(a.seen)-1].Node
}

// attended ends the watching.
func (a *audience) attended(t testing.TB) {
	a.stop()
	<-a.done
	require.ErrorIs(t, a.err, context.Canceled, "the observer ended by itself\n%s", lazily(a.k.tale))
}

func electionPlays() []play {
	scene := func(name string, act func(k *kin)) play {
		return play{
			name: name, clients: 3, before: there, queues: onlyLocks, use: useElection,
			act: func(k *kin) {
				k.watched = k.watch(k.clients[2])
				act(k)
			},
			after: func(k *kin) {
				a := k.watched
				for deadline := time.Now().Add(timeout + again); a.leads() != "" && time.Now().Before(deadline); {
					time.Sleep(slack)
				}
				require.Empty(k.t, a.leads(), "the observer does not know that nobody leads\n%s", lazily(k.tale))
				a.attended(k.t)
			},
		}
	}
	return []play{
		scene("election: two campaign, one tries, one asks", func(k *kin) {
			for i, c := range k.clients[:2] {
				k.do(ms+time.Duration(i)*10*ms, func() {
					l, s := k.get(c, fmt.Sprintf("candidate %d", i), lockDir, 0, stand(c).Campaign)
					k.during(l, s, 40*ms)
				})
			}
			k.do(15*ms, func() {
				l, s := k.get(k.clients[2], "tries", lockDir, 0, stand(k.clients[2]).TryCampaign, zksync.ErrNotAcquired)
				k.during(l, s, 10*ms)
			})
			k.do(20*ms, func() { k.asks(k.clients[1]) })
		}),
		scene("election: two run, one is hasty", func(k *kin) {
			for i, c := range k.clients[:2] {
				k.do(ms+time.Duration(i)*10*ms, func() { k.runs(c, 0) })
			}
			k.do(20*ms, func() { k.runs(k.clients[2], 20*ms) })
		}),
	}
}

// asks who stands and who leads.
func (k *kin) asks(c *client) {
	e := stand(c)
	_ = k.call(c, "asks for all", 0, func(ctx context.Context) error {
		list, err := e.Candidates(ctx)
		for i := 1; i < len(list); i++ {
			if list[i].Token.Compare(list[i-1].Token) <= 0 {
				k.wrong("candidates out of order: %v", list)
			}
		}
		return err
	})
	_ = k.call(c, "asks for the leader", 0, func(ctx context.Context) error {
		who, err := e.Leader(ctx)
		if err == nil && (who.ID == "" || who.Node == "" || who.Token.IsZero()) {
			k.wrong("a leader without a name: %v", who)
		}
		return err
	}, zksync.ErrNoLeader)
}

// runs has a client's function run once under its leadership.
func (k *kin) runs(c *client, wait time.Duration) {
	party := fmt.Sprintf("client %d", c.index)
	_ = k.call(c, party+" runs", wait, func(ctx context.Context) error {
		return stand(c).Run(ctx, func(ctx context.Context, l *zksync.Lease) error {
			s := k.holds(party, lockDir, l)
			select {
			case <-ctx.Done():
			case <-time.After(30 * ms):
			}
			k.lets(s, func() error { return nil })
			return context.Cause(ctx)
		})
	}, context.Canceled)
}
