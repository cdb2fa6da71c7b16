package presence

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Set changes the data of the node to what data returns when its turn has come, and waits until the node has them, in the
// next session if need be. After an error the data may be there, also in the next session: it satisfies errs.Ambiguous,
// unless nothing was begun.
//
// It writes only to a node that was seen on the present connection, and at the version that it had. So the node of another
// process that has taken the place while there was no connection is left alone.
func (p *Presence) Set(ctx context.Context, data func() []byte) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return errs.OfContext(ctx)
	}
	if p.leaving.Err() != nil {
		return errs.ErrReleased
	}
	next := data()
	p.mu.Lock()
	p.Data = next
	p.wanted++
	wanted := p.wanted
	p.mu.Unlock()
	callers := ctx
	ctx, cancel := p.At.Bounded(ctx)
	defer cancel()
	for pace := (node.Pace{Free: 2}); ; {
		done, err := p.write(ctx, next, wanted)
		if err != nil && callers.Err() == nil && p.At.Closing() {
			err = errs.ErrClosed // and not the end of a context that is not the caller's
		}
		if done || err != nil {
			return errs.MarkAmbiguous(err)
		}
		_ = pace.Rest(ctx, nil) // write finds out whether ctx has ended
	}
}

// write is one attempt of Set. It is not done if the node has changed, or is gone: then the process creates it again, with these data.
func (p *Presence) write(ctx context.Context, data []byte, wanted int) (done bool, err error) {
	var st *Stay
	var link int64
	var version int32
	err = p.await(ctx, func() bool {
		if st = p.stay; st == nil {
			return false
		}
		done, link, version = p.written >= wanted, st.link, st.version
		return done || link == st.Epoch.Connection()
	})
	if done || err != nil {
		return done, err
	}
	// It is not sent again on another connection: by then the node may be that of another, at the same version. The look
	// at the node that comes first on each connection shows whose it is.
	err = p.Apply(ctx, st.Epoch, link, &zk.SetDataRequest{Path: p.Node, Data: data, Version: version})
	switch {
	case err == nil:
		p.saw(st, link, zkconn.NextVersion(version))
		return true, nil
	case ctx.Err() != nil:
		return false, errs.OfContext(ctx)
	case errors.Is(err, writers.ErrMoved):
		return false, p.await(ctx, func() bool { return p.stay != st || st.link != link })
	case record.RefusedAt(err, 0, zk.ErrBadVersion): // an event reports that
		return false, p.await(ctx, func() bool { return p.stay != st || st.version != version })
	case record.RefusedAt(err, 0, zk.ErrNoNode), errors.Is(err, zkconn.ErrOver), errors.Is(err, errs.ErrSessionExpired):
		return false, p.await(ctx, func() bool { return p.stay != st })
	}
	return false, err
}
