package zkelection

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Candidate is who stands for election. ID and Data are what he says of himself; the
// rest is filled in where a Candidate is read.
type Candidate struct {
	ID   string // a name for people and for finding him, an address for instance
	Data []byte // anything; kept in the candidate's node, so a few kilobytes at most

	Session int64        // the ZooKeeper session
	Token   zksync.Token // the fencing token that he has, or would have, as a leader
	Node    string       // the path of his node
}

// Election is one candidate's view of an election. Each Campaign is a candidacy of its
// own, so one Election may even campaign several times at once. It is safe for use by
// many goroutines.
type Election struct {
	path   string
	s      *zksync.Session
	at     *session.Access
	grants *share.Unshared
}

// New names an election by the path of its directory, which is created when first
// needed and belongs to the election. Curator's LeaderSelector may stand for it as well, its
// LeaderLatch must not: it would lead beside us. Where one is seen, all calls but Contenders fail
// with zksync.ErrMisuse; see docs/interop.md for what cannot be seen. New does no I/O. A
// malformed path, an option that is not one of a lock, or a nil session is reported by the
// first call as zksync.ErrMisuse. Of self, ID and Data count.
func New(s *zksync.Session, path string, self Candidate, opts ...zksync.Option) *Election {
	self.Data = slices.Clone(self.Data)
	at := session.NewAccess((*session.Session)(s), path, opts)
	g := share.NewUnshared(at, "", zksync.KindLock)
	g.Queue().Refuse = latches.Refuse
	g.Queue().Data = func() []byte { return at.Content(node.Content{ID: self.ID, Data: self.Data}).Encode() }
	return &Election{path: path, s: s, at: at, grants: g}
}

// Campaign waits until this candidate leads, and returns the lease of the leadership. Its
// Unlock resigns: then the oldest other candidate leads, and this one does not unless it
// campaigns again. Its Done closes when the leadership is lost, before the servers can
// grant it to anybody else. Campaign waits through disconnects and lost sessions, and
// fails when ctx ends (the error wraps the context's), the session is closed
// (zksync.ErrClosed), the call can never succeed (zksync.ErrMisuse), or the servers
// deny access; then it is no candidate any more.
func (e *Election) Campaign(ctx context.Context) (*zksync.Lease, error) {
	l, err := e.grants.Acquire(ctx, e.grants.Queue(), false)
	return (*zksync.Lease)(l), e.wrap("campaign", err)
}

// TryCampaign leads if nobody else is a candidate, else it fails with
// zksync.ErrNotAcquired. It waits for the servers' answers only; ctx bounds that.
// Otherwise it fails like Campaign.
func (e *Election) TryCampaign(ctx context.Context) (*zksync.Lease, error) {
	l, err := e.grants.Try(ctx, e.grants.Queue(), false)
	return (*zksync.Lease)(l), e.wrap("try-campaign", err)
}

// Run campaigns, and runs f while leading. The context that f gets ends with the
// leadership, cause zksync.ErrLost, and with ctx. f is not called before a server has
// confirmed that the leadership still stands.
//
// When f returns while it leads, Run resigns and returns f's error. When the leadership was
// lost while f ran, Run waits for f to return and campaigns again, whatever f returned. Run
// ends with ctx, too, and fails like Campaign.
func (e *Election) Run(ctx context.Context, f func(ctx context.Context, l *zksync.Lease) error) error {
	for pace := (node.Pace{}); ; {
		led, err := e.Campaign(ctx)
		if err != nil {
			return err
		}
		l := (*lease.Lease)(led)
		// One request: between winning and here the connection may have been lost, and
		// nobody knows yet. It waits for a connection no longer than the lease lives.
		_, err = l.GuardWithin(ctx, nil)
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

// passing reports whether a confirmation failed for a reason that may be another one the
// next time: the leadership is over, or nobody knows.
func passing(err error) bool {
	return errors.Is(err, zksync.ErrLost) || errors.Is(err, zksync.ErrReleased) || zksync.Ambiguous(err)
}

// Leader is who leads now, as the leader of the servers knew it at some instant of the
// call; zksync.ErrNoLeader without one. It blocks for three requests, through
// disconnects, until ctx ends or the session is closed.
func (e *Election) Leader(ctx context.Context) (Candidate, error) {
	list, err := e.list(ctx, 1)
	if err == nil && len(list) == 0 {
		err = zksync.ErrNoLeader
	}
	if err != nil {
		return Candidate{}, e.wrap("leader", err)
	}
	return list[0], nil
}

// Candidates lists the candidates in the order in which they will lead; the first one
// does. It blocks for two requests and one for each candidate, otherwise like Leader.
func (e *Election) Candidates(ctx context.Context) ([]Candidate, error) {
	list, err := e.list(ctx, math.MaxInt)
	return list, e.wrap("candidates", err)
}

// Contenders lists the candidates as contenders of the queue. It is a snapshot of one
// server, which may lag; decide nothing by it.
func (e *Election) Contenders(ctx context.Context) ([]zksync.Contender, error) {
	if err := e.at.Misuse(); err != nil {
		return nil, e.wrap("list", err)
	}
	return zksync.Contenders(ctx, e.s, e.path)
}

func (e *Election) list(ctx context.Context, limit int) (list []Candidate, err error) {
	err = e.at.In(ctx, func(ctx context.Context, ep *zkconn.Epoch) (err error) {
		if err := synced(ctx, ep, e.at.Full(e.path)); err != nil {
			return err
		}
		list, err = e.read(ctx, ep, limit)
		return err
	})
	return list, err
}

// String names the election for messages.
func (e *Election) String() string { return fmt.Sprintf("election %s", e.path) }

func (e *Election) wrap(op string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: e.path, Err: err}
}
