package session

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Session is what package zksync documents under this name.
type Session struct {
	client   *zkconn.Client
	settings Settings
	servers  []string
	chroot   string
	host     string
	logger   *slog.Logger
	journal  *sessionJournal // nil without a session file

	// ctx ends, with errs.ErrClosed as its cause, when Close begins. Everything that the
	// session starts hangs on it and is joined by work.
	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	holds  map[Hold]struct{} // held now

	over   chan struct{} // closed when Close has done what it could
	result error         // of Close, once over is closed
}

// Connect is zksync.Connect.
func Connect(ctx context.Context, servers string, opts ...Option) (*Session, error) {
	fail := func(err error) (*Session, error) {
		return nil, &errs.Error{Op: "connect", Path: servers, Err: err}
	}
	set, err := sessionSettings(opts)
	if err != nil {
		return fail(err)
	}
	list, chroot, err := parseConnectString(servers)
	if err != nil {
		return fail(err)
	}
	if err := ctx.Err(); err != nil {
		return fail(errs.OfContext(ctx))
	}
	s := newSession(set, list, chroot)
	config := s.config()
	if set.File != "" {
		if s.journal, err = openJournal(set.File, list, s.logger); err != nil {
			return fail(err)
		}
		config.Predecessors = s.journal.inherited()
		config.OnSession, config.OnEnded = s.journal.add, s.journal.remove
	}
	s.client = zkconn.Open(config)
	if err := s.first(ctx); err != nil {
		return fail(errors.Join(err, s.Close()))
	}
	s.trace()
	return s, nil
}

// None is a session without servers: that of a primitive that was made with a nil session.
func None() *Session {
	s := newSession(Settings{}, nil, "")
	s.client = new(zkconn.Client)
	return s
}

func newSession(set Settings, servers []string, chroot string) *Session {
	s := &Session{
		settings: set, servers: servers, chroot: chroot,
		logger: set.Logger,
		holds:  make(map[Hold]struct{}),
		over:   make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	s.host, _ = os.Hostname() // only shown to people
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}

func (s *Session) config() zkconn.Config {
	return zkconn.Config{
		Servers: s.servers, Timeout: s.settings.Timeout, Auth: s.settings.Auth,
		Dial: s.dialer(), LeaseFraction: s.settings.Fraction, Logger: s.logger,
	}
}

// dialer composes WithDialer and WithTLS.
func (s *Session) dialer() func(context.Context, string, string) (net.Conn, error) {
	dial := s.settings.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	if s.settings.TLS == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := s.settings.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = strings.Cut(address, ":")
			if host, _, err := net.SplitHostPort(address); err == nil {
				config.ServerName = host
			}
		}
		conn := tls.Client(raw, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			raw.Close()
			return nil, &zkconn.TLSError{Err: err}
		}
		return conn, nil
	}
}

// first waits for the first ZooKeeper session.
func (s *Session) first(ctx context.Context) error {
	_, err := s.client.Epoch(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errs.OfContext(ctx)
	}
	if last := s.client.LastError(); last != nil && s.client.Refused() == nil {
		err = fmt.Errorf("%w; %w", err, last)
	}
	return err
}

// trace passes state changes to the tracer, if it wants them.
func (s *Session) trace() {
	t := s.settings.Trace
	if t == nil || t.State == nil {
		return
	}
	sub := s.client.Subscribe()
	s.work.Go(func() {
		defer sub.Stop()
		from := publicState(sub.From)
		for from != Closed {
			next, err := sub.Next(context.Background()) // ends with Closed
			if err != nil {
				return
			}
			to := publicState(next.To)
			t.State(from, to, next.Session, uint64(next.Epoch))
			from = to
		}
	})
}

func publicState(st zkconn.State) State {
	switch st {
	case zkconn.Connected:
		return Connected
	case zkconn.Suspended, zkconn.Connecting:
		return Suspended
	case zkconn.Lost:
		return Lost
	}
	return Closed
}

// State is what the session knows of itself at this instant.
func (s *Session) State() State { return publicState(s.client.State()) }

// Changes is zksync.Session.Changes.
func (s *Session) Changes(ctx context.Context) iter.Seq[State] {
	sub := s.client.Subscribe()
	forget := context.AfterFunc(ctx, sub.Stop)
	return func(yield func(State) bool) {
		defer forget()
		defer sub.Stop()
		for {
			next, err := sub.Next(ctx)
			if err != nil {
				return
			}
			st := publicState(next.To)
			if !yield(st) || st == Closed {
				return
			}
		}
	}
}

// Timeout is zksync.Session.Timeout.
func (s *Session) Timeout() time.Duration {
	if e := s.client.Current(); e != nil {
		return e.Timeout()
	}
	return 0
}

// ID is zksync.Session.ID.
func (s *Session) ID() int64 {
	if e := s.client.Current(); e != nil && e.Cause() == nil {
		return e.ID()
	}
	return 0
}

// Conn is zksync.Session.Conn.
func (s *Session) Conn() *zk.Conn {
	if e := s.client.Current(); e != nil {
		return e.Conn()
	}
	return nil
}

// Close is zksync.Session.Close.
func (s *Session) Close() error { return s.CloseWithin(zkconn.Closing) }

// CloseWithin is Close that spends d at most on servers which do not answer.
func (s *Session) CloseWithin(d time.Duration) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	held := slices.Collect(maps.Keys(s.holds))
	s.mu.Unlock()
	if !first {
		// Not a sync.Once: time would stand still in the synctest bubble of whoever waits for one.
		<-s.over
		return s.result
	}
	defer close(s.over)
	s.stop(errs.ErrClosed)
	// Holders are told before the servers can grant to anybody else.
	for _, l := range held {
		l.Finish(errs.ErrReleased)
	}
	// Of a connection that is tapped the ZooKeeper session stays, but not our part in
	// it: all places are lost at once, and their nodes left to the reaper.
	s.client.Stop(d)
	s.work.Wait()
	s.client.Finish(d)
	if s.journal != nil {
		s.result = s.journal.close()
	}
	return s.result
}

// Context ends, with errs.ErrClosed as its cause, when Close begins; Closing reports whether it has.
func (s *Session) Context() context.Context { return s.ctx }
func (s *Session) Closing() bool            { return s.ctx.Err() != nil }

// Client is the connection, Logger where to log, and Trace what the tracer wants to be told; nil for nothing.
func (s *Session) Client() *zkconn.Client { return s.client }
func (s *Session) Logger() *slog.Logger   { return s.logger }
func (s *Session) Trace() *Trace          { return s.settings.Trace }

// Hold is something that is held in a session, and that Close ends.
type Hold interface {
	// Finish ends it with err. It reports false if it had ended before.
	Finish(err error) bool
}

// Remember has Close end a hold; it reports false once that has begun.
func (s *Session) Remember(h Hold) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.holds[h] = struct{}{}
	return true
}

// Forget is Remember's reverse.
func (s *Session) Forget(h Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.holds, h)
}

// Spawn runs f in a goroutine that Close joins. It reports false, and does not run
// f, once Close has begun.
func (s *Session) Spawn(f func()) bool {
	if !s.begin() {
		return false
	}
	go func() {
		defer s.work.Done()
		f()
	}()
	return true
}

// Within runs f in this goroutine, otherwise like Spawn.
func (s *Session) Within(f func()) bool {
	if !s.begin() {
		return false
	}
	defer s.work.Done()
	f()
	return true
}

func (s *Session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// Full is the path on the servers of one of the session's paths.
func (s *Session) Full(path string) string { return s.chroot + path }

// Local is the reverse of Full.
func (s *Session) Local(path string) string { return strings.TrimPrefix(path, s.chroot) }

// In runs f in the ZooKeeper session of the moment, and again in the next one when that ends (f
// returns zkconn.ErrOver). f's context ends with ctx and when the session closes; Close waits for f,
// so it must run nothing that is the user's.
func (s *Session) In(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	err := errs.ErrClosed
	s.Within(func() { err = s.inUnjoined(ctx, f) })
	return err
}

// inUnjoined is In, but Close does not wait for it.
func (s *Session) inUnjoined(ctx context.Context, f func(ctx context.Context, e *zkconn.Epoch) error) error {
	ctx, cancel := s.Bounded(ctx)
	defer cancel()
	for pace := (node.Pace{}); ; {
		e, err := s.client.Epoch(ctx)
		if err == nil {
			err = f(ctx, e)
		}
		switch {
		case err == nil:
			return nil
		case s.ctx.Err() != nil:
			return errs.ErrClosed
		case ctx.Err() == nil && errors.Is(err, zkconn.ErrOver):
		default:
			return node.Reason(ctx, err)
		}
		_ = pace.Rest(ctx, e)
	}
}

// Bounded returns ctx such that it also ends, with errs.ErrClosed, when the session closes.
func (s *Session) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errs.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Briefly makes an attempt of a form without leases, which has no context, and reports whether it
// succeeded. It reports false at once while the servers cannot be reached, and waits for their
// answers no longer than a third of the session timeout. It panics on errors that trying again would not mend.
func (s *Session) Briefly(try func(context.Context) error) bool {
	if s != nil && s.client != nil && s.ctx.Err() == nil && s.State() != Connected {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.Patience())
	defer cancel()
	err := try(ctx)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errs.ErrNotAcquired), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	panic(err)
}

// Patience is how long a call without a context may wait for an answer that needs
// nobody else's cooperation.
func (s *Session) Patience() time.Duration {
	if s == nil || s.client == nil {
		return 0
	}
	return max(s.Timeout()/3, 10*time.Millisecond)
}
