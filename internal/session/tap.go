package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Tap is zksync.Tap. What users call a tapped connection is an external one inside: see [zkconn.External].
func Tap(ctx context.Context, conn *zk.Conn, opts ...Option) (*Session, error) {
	fail := func(err error) (*Session, error) {
		return nil, &errs.Error{Op: "tap", Err: err}
	}
	set, err := sessionSettings(opts)
	if err != nil {
		return fail(err)
	}
	if conn == nil {
		return fail(fmt.Errorf("%w: a nil connection", errs.ErrMisuse))
	}
	if len(set.Auth) > 0 || set.TLS != nil || set.Dial != nil || set.File != "" {
		return fail(fmt.Errorf("%w: WithAuth, WithTLS, WithDialer and WithSessionFile concern connecting, "+
			"which the owner of the connection did", errs.ErrMisuse))
	}
	s := newSession(set, nil, "")
	s.client = zkconn.External(s.config(), conn)
	if _, err := s.client.Epoch(ctx); err != nil {
		closed := s.Close()
		return fail(errors.Join(errs.OfContext(ctx), closed))
	}
	s.trace()
	return s, nil
}
