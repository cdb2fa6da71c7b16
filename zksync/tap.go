package zksync

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Tap makes a Session on a client connection that the caller has already, and goes
// on to own: a program being ported need not open a second one. All paths are
// absolute, there is no chroot.
//
// Close of the Session removes the Session's nodes and leaves the connection open; do
// not close the connection before. What could not be removed in two seconds, because
// the servers cannot be reached, is removed in the background as soon as they can: by a
// goroutine that ends when that is done or the connection is closed, whichever is
// first. Until then others are kept out, as by any holder they cannot hear of. What an
// ephemeral latch of package zklatch has counted stays until the connection is closed,
// and so may a phaser's claim to run the function of WithOnAdvance, if it is made or held
// when the session is lost or closed.
//
// A connection of one's own with [Connect] is better where there is a choice. Of an
// adopted one the frames cannot be seen, so that acquiring costs a request more, a
// hand-over costs a listing, the lease is kept alive by requests of its own four
// times per session timeout, WithLinger is ignored, and the client's own weaknesses
// remain (a second's pause before a lone server is dialled again, a data race when
// it re-sends watches). If it is lost while a node is being made, and comes back to the
// server that has kept the request, the node may be made then, after it was looked for in
// vain: a connection of one's own is searched again, but here such a node stays until the
// connection is closed. Exclusion, loss and fencing are the same.
//
// The session timeout is what the servers granted to the connection; WithTimeout,
// if given, bounds it from above. Options about connecting (WithAuth, WithTLS,
// WithDialer, WithSessionFile) are ErrMisuse. Tap blocks until the connection has a
// session that answers, or ctx ends.
func Tap(ctx context.Context, conn *zk.Conn, opts ...Option) (*Session, error) {
	fail := func(err error) (*Session, error) {
		return nil, &Error{Op: "tap", Err: err}
	}
	set, err := sessionSettings(opts)
	if err != nil {
		return fail(err)
	}
	if conn == nil {
		return fail(fmt.Errorf("%w: a nil connection", ErrMisuse))
	}
	if len(set.auth) > 0 || set.tls != nil || set.dial != nil || set.file != "" {
		return fail(fmt.Errorf("%w: WithAuth, WithTLS, WithDialer and WithSessionFile concern connecting, "+
			"which the owner of the connection did", ErrMisuse))
	}
	s := newSession(set, nil, "")
	s.client = zkconn.Adopt(s.config(), conn)
	if _, err := s.client.Epoch(ctx); err != nil {
		closed := s.Close()
		return fail(errors.Join(errs.OfContext(ctx), closed))
	}
	s.trace()
	return s, nil
}
