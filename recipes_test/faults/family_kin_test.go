package faults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// kin is a world in which something else than a mutex is used: any number of queues, and
// holds that may go together.
type kin struct {
	*world
	lines map[string]*line

	kmu    sync.Mutex
	stakes []*stake
	proper map[*attempt][]error
	wrongs []string

	// What a play has to remember until its end: the play itself is played by many at a time.
	watched  *audience
	archived *archive
}

// stake is one hold as the party that got it sees it.
type stake struct {
	party   string
	dir     string
	node    string // without its directory; empty where the form tells nobody
	reads   bool
	weight  int64 // 0 for a lock
	token   zksync.Token
	granted time.Time
	ended   time.Time // the party ceased to act as a holder; zero if it did not
}

func newKin(w *world) *kin {
	return &kin{world: w, lines: make(map[string]*line), proper: make(map[*attempt][]error)}
}

// queue has the server's history of a directory followed.
func (k *kin) queue(dir, base string) { k.lines[dir] = newLine(k.srv, dir, base) }

// dirs are the queues, always in the same order.
func (k *kin) dirs() []string { return slices.Sorted(maps.Keys(k.lines)) }

// do starts a party.
func (k *kin) do(start time.Duration, f func()) {
	k.running.Go(func() {
		time.Sleep(start)
		f()
	})
}

// call makes one call of a client within its time, and enters into the book what comes of
// it. proper are the errors that are no failure.
func (k *kin) call(c *client, party string, wait time.Duration, f func(context.Context) error, proper ...error) error {
	if wait == 0 {
		wait = patient
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	a := k.book.asking(party, wait, false)
	k.kmu.Lock()
	k.proper[a] = proper
	k.kmu.Unlock()
	c.mu.Lock()
	c.cancels[a] = cancel
	c.mu.Unlock()
	err := f(ctx)
	c.mu.Lock()
	delete(c.cancels, a)
	c.mu.Unlock()
	k.book.answered(a, err)
	return err
}

// get is call for what gives a lease, and enters the hold.
func (k *kin) get(c *client, party, dir string, wait time.Duration, f func(context.Context) (*zksync.Lease, error), proper ...error) (*zksync.Lease, *stake) {
	var l *zksync.Lease
	var s *stake
	_ = k.call(c, party, wait, func(ctx context.Context) (err error) {
		l, err = f(ctx)
		if err == nil {
			s = k.holds(party, dir, l)
		}
		return err
	}, proper...)
	return l, s
}

// holds enters a hold.
func (k *kin) holds(party, dir string, l *zksync.Lease) *stake {
	s := &stake{party: party, dir: dir, token: l.Token(), granted: time.Now(), node: path.Base(l.Node())}
	if e := newSpot(s.node, 0); e != nil {
		s.reads, s.weight = e.kind == "__READ__", e.weight
	}
	return k.enter(s)
}

func (k *kin) enter(s *stake) *stake {
	k.kmu.Lock()
	defer k.kmu.Unlock()
	k.stakes = append(k.stakes, s)
	return s
}

// lets has the party cease to act as a holder, and then do what ends the hold.
func (k *kin) lets(s *stake, f func() error) {
	k.kmu.Lock()
	s.ended = time.Now()
	k.kmu.Unlock()
	began := time.Now()
	err := f()
	if err != nil && !errors.Is(err, zksync.ErrLost) {
		k.wrong("%s gave back: %v", s.party, err)
	}
	if took := time.Since(began); took > time.Second+slack {
		k.wrong("%s took %v to give back", s.party, took)
	}
}

// wrong keeps something that must not have happened until everybody has come back.
func (k *kin) wrong(format string, args ...any) {
	k.kmu.Lock()
	defer k.kmu.Unlock()
	k.wrongs = append(k.wrongs, fmt.Sprintf(format, args...))
}

// end is when the party ceased to act as a holder: it gave the hold back, or was told of the loss.
// kmu is held.
func (k *kin) end(s *stake) time.Time {
	k.book.mu.Lock()
	defer k.book.mu.Unlock()
	lost := k.book.lost[s.token]
	if !lost.IsZero() && !lost.Before(s.granted) && (s.ended.IsZero() || lost.Before(s.ended)) {
		return lost
	}
	return s.ended
}

// tale is the story with the holds of all kinds.
func (k *kin) tale() string {
	k.kmu.Lock()
	stakes := slices.Clone(k.stakes)
	k.kmu.Unlock()
	text := ""
	for _, s := range stakes {
		end := "-"
		if e := k.end(s); !e.IsZero() {
			end = e.Sub(k.began).String()
		}
		text += s.party + ": held " + s.token.String() + " from " + s.granted.Sub(k.began).String() + " to " + end + ", node " + s.dir + "/" + s.node + "\n"
	}
	return text + k.story()
}

// next opens a session that comes when all is over, and has it use everything again: that
// takes no time.
func (k *kin) next(use func(t testing.TB, s *zksync.Session)) {
	s := k.srv.Session(k.t)
	began := time.Now()
	use(k.t, s)
	require.Zero(k.t, time.Since(began), "the next use took its time\n%s", lazily(k.tale))
	require.NoError(k.t, s.Close())
}
