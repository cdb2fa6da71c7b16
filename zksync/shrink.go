package zksync

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Shrink gives n of the permits of l, a lease of the form without, back and returns the
// lease of the rest; l ends then. It goes on until it is known what became of that, through
// disconnects: until then the servers may count all that l stands for as held. ok is false,
// and l what it was, where the servers refuse. After an error nothing is held any more: l
// was lost, or ctx ended, which gives the rest up as well.
func (s *permits) Shrink(ctx context.Context, l *Lease, n int64) (_ *Lease, ok bool, err error) {
	old := l.p
	rest := old.self.weight - n
	if err := l.Err(); err != nil {
		return nil, true, err
	}
	if rest <= 0 || n <= 0 || exhausted(old.self.seq) {
		return nil, false, nil // there a number would not keep the place: see readers.Downgrade
	}
	p := s.successor(old, rest)
	ctx, cancel := s.g.q.s.bounded(ctx)
	defer cancel()
	old.turning.Store(true)
	data := encodeNode(s.g.q.owner(), l.since, extras{token: l.token})
	sent, err := p.swap(ctx, old, data, s.g.q.acl)
	at, refused := p.e.Connection(), false
	switch {
	case err == nil:
		next, err := s.succeed(l, p)
		return next, true, err
	case ctx.Err() == nil && !errors.Is(err, errGone) && !errors.Is(err, zkconn.ErrOver):
		// Refused; but an attempt before, without an answer, may have been applied.
		_, there, lookErr := p.e.Exists(ctx, p.node)
		if lookErr == nil && there {
			next, err := s.succeed(l, p)
			return next, true, err
		}
		refused = lookErr == nil
	}
	if sent { // and may yet be applied, when nobody knows of the rest
		p.e.Doubt(s.g.q.dir, p.self.name, at)
	}
	p.unsustain()
	if refused {
		old.turnBack()
		return nil, false, nil
	}
	p.e.Reap(zkconn.Litter{Dir: s.g.q.dir, Node: p.node})
	_ = l.Unlock()
	return nil, true, s.g.q.failure(ctx, err)
}

// successor is a place for so many permits that is to take that of old.
func (s *permits) successor(old *place, permits int64) *place {
	p := &place{q: s.request(permits), e: old.e, self: old.self}
	p.self.uuid, p.self.weight = node.NewUUID(), permits
	p.self.name = entryPrefix(KindPermit, p.self.uuid, permits) + formatSequence(old.self.seq)
	p.node = s.g.q.dir + "/" + p.self.name
	p.undepend = p.e.Inherit()
	return p
}

// succeed returns the lease of the place that has taken that of l.
func (s *permits) succeed(l *Lease, p *place) (*Lease, error) {
	s.g.mu.Lock()
	held := s.g.held[l.p] == l
	delete(s.g.held, l.p)
	s.g.mu.Unlock()
	l.p.forget()
	if !held { // it ended meanwhile, and the rest with it
		p.leave(0)
		return nil, l.Err()
	}
	p.guard(s.g)
	next, err := s.g.take(l.ctx, p, l.mirror)
	l.finish(ErrReleased)
	return next, err
}
