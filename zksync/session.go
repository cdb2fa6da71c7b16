package zksync

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
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Session is a connection to ZooKeeper that outlives single ZooKeeper sessions:
// when one is lost, with every [Lease] of it, the next one is opened. It is safe
// for use by many goroutines, and one is enough for a process.
//
// A call that needs the servers while they cannot be reached waits until they can,
// its context ends, or the Session is closed.
type Session struct {
	client  *zkconn.Client
	set     settings
	servers []string
	chroot  string
	host    string
	logger  *slog.Logger
	estate  *estate // nil without a session file

	// ctx ends, with ErrClosed as its cause, when Close begins. Everything that the
	// session starts hangs on it and is joined by work.
	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	leases map[*Lease]struct{} // held now

	over   chan struct{} // closed when Close has done what it could
	result error         // of Close, once over is closed
}

// Connect opens a session with the servers of a ZooKeeper connect string
// ("zk1:2181,zk2:2181,zk3:2181/app", chroot included). All paths of the session
// are below the chroot, which is created when needed.
//
// It blocks until there is a ZooKeeper session or ctx ends; then the error names
// the servers, wraps the context's error and says why the last attempt failed or, during
// the first, how long that has waited. A
// malformed connect string or option gives ErrMisuse at once, and so does a
// session file that a living process uses. ctx is not used after Connect returned.
func Connect(ctx context.Context, servers string, opts ...Option) (*Session, error) {
	fail := func(err error) (*Session, error) {
		return nil, &Error{Op: "connect", Path: servers, Err: err}
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
	if set.file != "" {
		if s.estate, err = openEstate(set.file, list, s.logger); err != nil {
			return fail(err)
		}
		config.Predecessors = s.estate.inherited()
		config.OnSession, config.OnEnded = s.estate.add, s.estate.remove
	}
	s.client = zkconn.Open(config)
	if err := s.first(ctx); err != nil {
		return fail(errors.Join(err, s.Close()))
	}
	s.trace()
	return s, nil
}

func newSession(set settings, servers []string, chroot string) *Session {
	s := &Session{
		set: set, servers: servers, chroot: chroot,
		logger: set.logger,
		leases: make(map[*Lease]struct{}),
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
		Servers: s.servers, Timeout: s.set.timeout, Auth: s.set.auth,
		Dial: s.dialer(), LeaseFraction: s.set.fraction, Logger: s.logger,
	}
}

// dialer composes WithDialer and WithTLS.
func (s *Session) dialer() func(context.Context, string, string) (net.Conn, error) {
	dial := s.set.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	if s.set.tls == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := s.set.tls.Clone()
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
	t, ok := s.set.tracer.(StateTracer)
	if !ok {
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
			t.StateChange(StateChangeData{From: from, To: to, Session: next.Session, Epoch: uint64(next.Epoch)})
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

// Changes returns every change of the state after the call, in order and without
// loss however slow the caller is. The sequence blocks until there is a next
// change; it ends when ctx does and after [Closed]. It is to be ranged over once: changes are
// kept for it until then, or until ctx ends.
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

// Timeout is the session timeout that the servers granted, 0 before the first
// session.
func (s *Session) Timeout() time.Duration {
	if e := s.client.Current(); e != nil {
		return e.Timeout()
	}
	return 0
}

// ID is the id of the current ZooKeeper session, as the servers' own tools show it
// in hexadecimal; 0 while there is none.
func (s *Session) ID() int64 {
	if e := s.client.Current(); e != nil && e.Cause() == nil {
		return e.ID()
	}
	return 0
}

// Conn is the escape hatch: the client connection of the current ZooKeeper
// session. It knows nothing of the session's chroot: its requests take, and return, the paths
// on the servers, chroot included, where everything else of this module ([Lease.Guard], too)
// leaves that out. It dies with that session, so do not keep it; a request on a dead one
// fails with zk.ErrConnectionClosed. Do not close it. It is nil after a [Tap]ped
// connection was closed and before the first session.
func (s *Session) Conn() *zk.Conn {
	if e := s.client.Current(); e != nil {
		return e.Conn()
	}
	return nil
}

// Close releases every lease, ends the ZooKeeper session on the servers, and joins
// every goroutine of the session. Whoever waits in a call of it gets ErrClosed at
// once. When the servers cannot be reached, it tries for two seconds and then
// leaves the session to its timeout, or to whoever finds it in the session file; of a
// connection that is [Tap]ped it removes the nodes, and what is left after two seconds
// goes as soon as the connection allows. It may be called more than once, and by several at
// once; all return together, and the same. An error concerns the session file only.
func (s *Session) Close() error { return s.closeWithin(zkconn.Closing) }

// closeWithin is Close that spends d at most on servers which do not answer.
func (s *Session) closeWithin(d time.Duration) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	held := slices.Collect(maps.Keys(s.leases))
	s.mu.Unlock()
	if !first {
		// Not a sync.Once: time would stand still in the synctest bubble of whoever waits for one.
		<-s.over
		return s.result
	}
	defer close(s.over)
	s.stop(ErrClosed)
	// Holders are told before the servers can grant to anybody else.
	for _, l := range held {
		l.finish(ErrReleased)
	}
	// Of a connection that is tapped the ZooKeeper session stays, but not our part in
	// it: all places are lost at once, and their nodes left to the reaper.
	s.client.Stop(d)
	s.work.Wait()
	s.client.Finish(d)
	if s.estate != nil {
		s.result = s.estate.close()
	}
	return s.result
}

// spawn runs f in a goroutine that Close joins. It reports false, and does not run
// f, once Close has begun.
func (s *Session) spawn(f func()) bool {
	if !s.begin() {
		return false
	}
	go func() {
		defer s.work.Done()
		f()
	}()
	return true
}

// within runs f in this goroutine, otherwise like spawn.
func (s *Session) within(f func()) bool {
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

// full is the path on the servers of one of the session's paths.
func (s *Session) full(path string) string { return s.chroot + path }

// local is the reverse of full.
func (s *Session) local(path string) string { return strings.TrimPrefix(path, s.chroot) }
