package zkelection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Candidate is a candidate of an election. Its process sets ID and Data, the servers the rest.
type Candidate struct {
	ID   string // for people and other processes, such as an address
	Data []byte // in the candidate's node: a few kilobytes at most

	Session int64        // of ZooKeeper
	Token   zksync.Token // fencing token of its leadership, present or future
	Node    string       // path
}

// Election is one candidate's view of an election. Each Campaign is a candidacy of its own.
type Election struct {
	path   string
	s      *zksync.Session
	at     *session.Access
	grants *share.Unshared
	bare   bool // see WithBareID

	mu   sync.Mutex
	self Candidate    // Data is that of the next candidacy
	led  *lease.Lease // the newest leadership; nil before the first

	campaigns int // how many wait
}

// bareID is WithBareID.
type bareID struct{ zksync.Option }

// WithBareID writes only the ID of the candidate to its node, up to 64 characters, for Curator's getLeader
// and getParticipants. Data are zksync.ErrMisuse then.
func WithBareID() zksync.Option { return bareID{session.Misplaced("WithBareID")} }

var errBare = errs.Misuse("Data of a candidate with a bare ID; leave out one of the two")

// New names an election. self is this process's candidate.
//
//	e := zkelection.New(s, "/scheduler/leader", zkelection.Candidate{ID: "10.0.0.7:8080"})
//	err := e.Run(ctx, func(ctx context.Context, l *zksync.Lease) error { ... }) // while it leads
//
// Curator's LeaderSelector may use the same path. Its LeaderLatch must not: it would lead beside us, and is
// zksync.ErrMisuse where it is seen. docs/interop.md says where it cannot be.
func New(s *zksync.Session, path string, self Candidate, opts ...zksync.Option) *Election {
	e := &Election{path: path, s: s, self: self}
	e.self.Data = slices.Clone(self.Data)
	own, rest := session.Own[bareID](opts)
	at := session.NewDelayed("zkelection", (*session.Session)(s), path, rest).Without("WithAsyncUnlock")
	if e.bare = len(own) > 0; e.bare && len(self.Data) > 0 {
		at.Refuse(errBare)
	}
	g := share.NewUnshared(at, "", queue.KindLock)
	g.Queue().Type, g.Queue().Refuse = layout.Election, latches.Refuse
	g.Queue().Data = func(s queue.Said) []byte {
		if e.bare {
			return []byte(e.self.ID)
		}
		c := e.content(e.data())
		said := at.Said(s)
		c.Under, c.Trace = said.Under, said.Trace
		return c.Encode()
	}
	g.Queue().Open = true // see SetData
	g.Queue().Says = true
	e.at, e.grants = at, g
	return e
}

// made is e, which New has made. Of a zero or nil value it panics.
func (e *Election) made() *Election {
	if e == nil || e.at == nil {
		panic(errs.Unmade("zkelection", "an Election", "New"))
	}
	return e
}

// Campaign waits until this candidate leads, and returns the lease of the leadership, which outlives ctx. Its
// Unlock resigns. Its Done closes when the leadership is lost, before the servers can grant it to another
// candidate.
func (e *Election) Campaign(ctx context.Context) (*zksync.Lease, error) {
	l, err := e.made().lead(ctx, e.grants.Queue().Obtain)
	return (*zksync.Lease)(l), e.wrap("campaign", err)
}

// TryCampaign leads if there is no other candidate, else it fails with zksync.ErrNotAcquired.
func (e *Election) TryCampaign(ctx context.Context) (*zksync.Lease, error) {
	l, err := e.made().lead(ctx, e.grants.Queue().Try)
	return (*zksync.Lease)(l), e.wrap("try-campaign", err)
}

// Run campaigns, and runs f while leading, once a server has confirmed the leadership. The context of f ends
// with ctx, and with the leadership. If f returns while it leads, Run resigns and returns f's error. If the
// leadership was lost, Run waits until f returns, ignores its result, and campaigns again.
func (e *Election) Run(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	for pace := (node.Pace{}); ; {
		led, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		l := (*lease.Lease)(led)
		// One request: the connection may have been lost since the grant, and
		// nobody knows yet. It waits for a connection at most until the lease ends.
		_, err = l.GuardBare(ctx, nil)
		if ctx.Err() != nil {
			_ = l.UnlockWithin(ctx)
			return e.wrap("campaign", errs.OfContext(ctx))
		}
		if err != nil {
			_ = l.UnlockWithin(ctx)
			if passing(err) {
				_ = pace.Rest(ctx, nil) // Campaign finds out whether ctx has ended
				continue
			}
			return e.wrap("campaign", err) // the servers refuse, and would again
		}
		err = l.Scope(ctx, func(ctx context.Context) error { return f(ctx, led) })
		if ctx.Err() != nil || !errors.Is(l.Err(), zksync.ErrLost) {
			return err
		}
	}
}

// passing reports whether a confirmation failed for a reason that may pass: the leadership
// has ended, or the outcome is unknown.
func passing(err error) bool {
	return errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrReleased) || zksync.Ambiguous(err)
}

// Leader returns the candidate that leads. Without one the error is zksync.ErrNoLeader.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	list, err := e.made().list(ctx, 1)
	if err == nil && len(list) == 0 {
		err = zksync.ErrNoLeader
	}
	if err != nil {
		return Candidate{}, e.wrap("leader", err)
	}
	return list[0], nil
}

// Candidates lists the candidates in the order in which they will lead; the first one leads.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	list, err := e.made().list(ctx, math.MaxInt)
	return list, e.wrap("candidates", err)
}

// Contenders is [zksync.Contenders] of the election.
func (e *Election) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	if err := e.made().at.Misuse(); err != nil {
		return nil, e.wrap("list", err)
	}
	list, err := zksync.Contenders(ctx, e.s, e.path)
	return list, e.wrap("list", errs.Reason(err))
}

func (e *Election) list(ctx context.Context, limit int) (list []Candidate, err error) {
	err = e.at.Run(ctx, "", func(ctx context.Context, ep *zkconn.Epoch) (err error) {
		if err := synced(ctx, ep, e.at.Full(e.path)); err != nil {
			return err
		}
		list, err = e.read(ctx, ep, limit)
		return err
	})
	return list, err
}

func (e *Election) String() string { return fmt.Sprintf("election %s", e.made().path) }

func (e *Election) wrap(op string, err error) error { return e.at.Named(op, err) }
