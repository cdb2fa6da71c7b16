package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/internal/writers"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Session is documented in package zksync.
type Session struct {
	client   *zkconn.Client
	settings Settings
	servers  []string
	chroot   string
	host     string
	log      *logs.Log
	journal  *sessionJournal // nil without a session file
	crowds   queue.Crowds
	looks    node.Looks
	writers  writers.Writers
	kept     sync.Map                    // by path: see Occupy
	shared   sync.Map                    // see Shared
	parked   atomic.Pointer[func(error)] // see OnPark
	ensemble atomic.Pointer[string]      // see SetEnsemble

	openLooks openLooks // see lookIfOpen

	// ctx ends, with errs.ErrClosed as its cause, when Close begins. Everything
	// that the session starts ends with ctx, and Close waits for it with work.
	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu         sync.Mutex        // held while ctx is made to end
	holds      map[Hold]struct{} // what Close must end
	ending     bool              // Close ends them: see AfterHolds
	afterHolds []func()
	joining    bool // Close waits for work: see SpawnLate

	over   chan struct{} // closed when Close has done what it could
	result error         // of Close, once over is closed
}

// Connect is zksync.Connect.
func Connect(ctx context.Context, servers string, opts ...SessionOption) (*Session, error) {
	s, err := Prepare(servers, opts...)
	if err == nil && ctx.Err() != nil {
		err = errs.OfContext(ctx)
	}
	if err == nil {
		err = s.Open()
	}
	if err == nil {
		if err = s.Ready(ctx); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.Close())
	}
	return nil, errs.Wrap("zksync", "connect", servers, err)
}

// Prepare checks the arguments of Connect, and sends nothing. Until Open the session must not be used.
func Prepare(servers string, opts ...SessionOption) (*Session, error) {
	set, err := SettingsOf(opts)
	if err != nil {
		return nil, err
	}
	if set.Moving != nil && !set.Ensembles {
		return nil, errs.Misuse("WithMoving is an option of zkshard.Connect")
	}
	if err := set.checkTLS(); err != nil {
		return nil, err
	}
	list, chroot, err := ParseConnectString(servers)
	if err != nil {
		return nil, err
	}
	if set.Existing && chroot == "" {
		return nil, badConnectString(servers, `has no chroot, but WithExistingChroot is given: name the chroot, as in zk1:2181,zk2:2181/app`)
	}
	return newSession(set, list, chroot), nil
}

// Open begins to connect, and does not wait. After an error there is nothing to close.
func (s *Session) Open() (err error) {
	config := s.config()
	if file := s.settings.File; file != "" {
		if s.journal, err = openJournal(file, s.servers, s.log); err != nil {
			return err
		}
		config.Predecessors = s.journal.inherited()
		config.OnSession, config.OnEnded = s.journal.add, s.journal.remove
	}
	s.client = zkconn.Open(config)
	return nil
}

// Ready waits for the first ZooKeeper session. It is called once.
func (s *Session) Ready(ctx context.Context) error {
	if err := s.first(ctx); err != nil {
		return err
	}
	s.trace()
	return nil
}

// None is a session without servers. A primitive has it whose constructor got a nil session.
func None() *Session {
	s := newSession(Settings{}, nil, "")
	s.client = new(zkconn.Client)
	return s
}

func newSession(set Settings, servers []string, chroot string) *Session {
	s := &Session{
		settings: set, servers: servers, chroot: chroot,
		log:   logs.New(set.Logger),
		holds: make(map[Hold]struct{}),
		over:  make(chan struct{}),
	}
	s.host, _ = os.Hostname() // only shown to people
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}

func (s *Session) config() zkconn.Config {
	c := zkconn.Config{
		Servers: s.servers, Timeout: s.settings.Timeout, Auth: s.settings.Auth,
		Chroot: s.chroot, ExistingChroot: s.settings.Existing, ForwardOnly: s.settings.Forward,
		Dial: s.settings.Dial, LeaseFraction: s.settings.Fraction, Log: s.log,
	}
	if admit := s.settings.Admit; admit != nil {
		c.Admit = func(ctx context.Context, e *zkconn.Epoch) error { return admit(ctx, s, e) }
	}
	if t := s.Trace(); t != nil {
		c.OnRequest = t.Request
	}
	if s.settings.secured() {
		c.Secure = s.secure
	}
	return c
}

// first waits for the first ZooKeeper session. Its error also tells why the last attempt to connect failed.
func (s *Session) first(ctx context.Context) error {
	_, err := s.client.Epoch(ctx)
	if err == nil {
		s.warnOfShort(s.settings.Timeout, s.Timeout())
		if !s.settings.Existing {
			return nil
		}
		return s.bare().Run(ctx, "", func(ctx context.Context, e *zkconn.Epoch) error { return e.FindChroot(ctx) })
	}
	if ctx.Err() != nil {
		err = errs.OfContext(ctx)
	}
	if last := s.client.LastError(); last != nil && s.client.Refused() == nil {
		err = fmt.Errorf("%w; %w", err, last)
	}
	return err
}

// warnOfShort warns if the servers have raised the timeout that was asked for. What they grant then is usually two of their ticks,
// and a holder is told in time in each case only with zkconn.LeastHeld or more. In other cases it is unknown how long a tick is.
func (s *Session) warnOfShort(asked, granted time.Duration) {
	if granted > asked && granted < zkconn.LeastHeld {
		s.log.Once("short timeout", "").Warn("the session timeout is short: if the servers' leader is cut off, a holder may learn of a loss too late",
			"reason", fmt.Sprintf("%v was asked for, and the servers granted their least, %v", asked, granted))
	}
}

// LastFailure is why the newest attempt failed of those that others make for a caller: their contexts come
// from attempts, which has a trail. If they still wait for a connection, it is why there is none; if they wait
// for an answer, for how long already.
func (s *Session) LastFailure(attempts context.Context) error {
	if last := errs.LastOf(attempts); last != nil {
		return last
	}
	if s.State() != Connected {
		return s.client.LastError()
	}
	if e := s.client.Current(); e != nil && e.Silence() >= silent {
		return fmt.Errorf("no server has answered for %v", wording.Shortly(e.Silence()))
	}
	return nil
}

// silent is for how long servers must owe an answer before that is worth a word.
const silent = time.Second

// Timeout is zksync.Session.Timeout.
func (s *Session) Timeout() time.Duration {
	if e := s.client.Current(); e != nil {
		return e.Timeout()
	}
	return 0
}

// Heard is when the servers were asked last for something that they have answered; now if there is no such answer.
func (s *Session) Heard() time.Time {
	if e := s.client.Current(); e != nil && !e.Heard().IsZero() {
		return e.Heard()
	}
	return time.Now()
}

// Expires is zksync.Session.Expires.
func (s *Session) Expires() time.Time {
	if e := s.client.Current(); e != nil {
		return e.Expires()
	}
	return time.Time{}
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
	cut := s.client.WithdrawIdentity()
	e := s.client.Current()
	if e == nil {
		return nil
	}
	if cut {
		ctx, cancel := context.WithTimeout(s.ctx, connWait)
		defer cancel()
		_ = e.Await(ctx)
	}
	return e.Conn()
}

// connWait is how long Conn waits, at most, for a new connection, if it had to cut the last one.
const connWait = time.Second

// Close is zksync.Session.Close.
func (s *Session) Close() error { return s.CloseWithin(zkconn.Closing) }

// CloseWithin is Close with another limit: it waits at most d for servers that do not answer.
func (s *Session) CloseWithin(d time.Duration) error {
	s.mu.Lock()
	first := !s.Closing()
	s.stop(errs.ErrClosed)
	// No hold is missed: Remember refuses new ones once ctx has ended, which it looks at under the same lock.
	held := slices.Collect(maps.Keys(s.holds))
	s.ending = s.ending || first
	s.mu.Unlock()
	if !first {
		// This is no sync.Once: while a goroutine waits for one, the time of a synctest bubble stands still.
		<-s.over
		return s.result
	}
	defer close(s.over)
	s.endAll(held, d)
	return s.result
}

// endAll does what Close does, once.
func (s *Session) endAll(held []Hold, d time.Duration) {
	defer func() { // also if a tracer panics, which afterHolds calls
		s.client.Stop(d)
		// The goroutines of the session end with ctx, and their requests fail once the client has stopped.
		s.mu.Lock()
		s.joining = true
		s.mu.Unlock()
		s.work.Wait()
		if s.journal != nil {
			s.result = s.journal.close()
		}
	}()
	// Holders are told first, before the end of the ZooKeeper session lets the servers grant to others.
	for _, l := range held {
		l.Finish(errs.ErrReleased)
	}
	s.mu.Lock()
	after := s.afterHolds
	s.ending, s.afterHolds = false, nil
	s.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// Opened reports whether Connect has opened the session: it is neither zero nor nil.
func (s *Session) Opened() bool { return s != nil && s.client != nil }

// Context ends, with errs.ErrClosed as its cause, when Close begins.
// Closed is its Done channel, and Closing reports whether it has ended.
func (s *Session) Context() context.Context { return s.ctx }
func (s *Session) Closed() <-chan struct{}  { return s.ctx.Done() }
func (s *Session) Closing() bool            { return s.ctx.Err() != nil }

// Client is the connection, Log the log, and Trace the functions of the tracer, nil if there is no tracer.
func (s *Session) Client() *zkconn.Client { return s.client }
func (s *Session) Log() *logs.Log         { return s.log }
func (s *Session) Trace() *Trace          { return s.settings.Trace }

// Servers are the servers of the connect string, whatever their order there.
func (s *Session) Servers() string { return strings.Join(slices.Sorted(slices.Values(s.servers)), ",") }

// SetEnsemble names the ensemble and chroot of the session. Apart reports whether two sessions are known to have different ones.
func (s *Session) SetEnsemble(name string) { s.ensemble.Store(&name) }
func (s *Session) Apart(other *Session) bool {
	a, b := s.ensemble.Load(), other.ensemble.Load()
	return a != nil && b != nil && *a != *b
}

// Full is the path on the servers of one of the session's paths.
func (s *Session) Full(path string) string {
	if path == "/" && s.chroot != "" {
		return s.chroot
	}
	return s.chroot + path
}

// Local is the reverse of Full.
func (s *Session) Local(path string) string {
	if path == s.chroot {
		return "/"
	}
	return strings.TrimPrefix(path, s.chroot)
}
