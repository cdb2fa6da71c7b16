package session

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/tlsfiles"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-zookeeper/zk"
)

// Settings are the values of all options together.
type Settings struct {
	// Of a session.
	Timeout  time.Duration
	Auth     []zkconn.Auth
	TLS      *tls.Config
	Files    *tlsfiles.Files // of WithTLSFiles; nil without
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Logger   *slog.Logger
	Trace    *Trace
	Fraction float64
	File     string
	Existing bool // the chroot must exist
	Forward  bool // of WithForwardOnly
	// Admit is called in each ZooKeeper session before calls may begin there: see zkconn.Config.
	Admit func(ctx context.Context, s *Session, e *zkconn.Epoch) error
	// Moving is of zkshard.WithMoving; Ensembles of zkshard.Connect, which alone knows what to do with Moving.
	Moving    []string
	Ensembles bool

	// Of a lock.
	Handover   int
	HandoverIn time.Duration
	Linger     time.Duration
	MaxHold    time.Duration
	Async      bool          // Unlock does not wait
	Delay      time.Duration // after a loss

	// Of what keeps values.
	Codec codec.Codec

	// Of both.
	ACL       []zk.ACL
	Name      string
	Label     string     // the Name that the object itself was given
	Deadlocks *Deadlocks // of WithDeadlockDetection; nil without
	Under     string     // what every entry says that its owner held; "" for nothing: see node.FormatUnder

	used []use
	bad  error
}

// Deadlocks is where deadlocks are looked for.
type Deadlocks struct{ Roots []string }

// use is the name of an option that was given to a constructor, and where the option has a meaning.
type use struct {
	name         string
	lock, values bool
}

// Option is documented in package zksync.
type Option interface{ apply(*Settings) }

// SessionOption is documented in package zksync.
type SessionOption interface{ applyToSession(*Settings) }

type option struct {
	use
	set func(*Settings)
}

func (o option) apply(s *Settings) {
	s.used = append(s.used, o.use)
	o.set(s)
}

// ForSession is an option of a session.
type ForSession func(*Settings)

func (set ForSession) applyToSession(s *Settings) { set(s) }

// ForLock makes an option that every primitive takes; one that is for holds only must stand in OfHolds. The name is for the error
// of a primitive that does not take it.
func ForLock(name string, set func(*Settings)) Option {
	return option{use{name: name, lock: true}, set}
}

// ForValues makes an option of what keeps values of the user: see [NewValueAccess].
func ForValues(name string, set func(*Settings)) Option {
	return option{use{name: name, values: true}, set}
}

// Common is an option of a session and of a primitive.
type Common struct {
	Option
	ForSession
}

// ForBoth makes an option of a session and of a primitive.
func ForBoth(name string, set func(*Settings)) Common { return Common{ForLock(name, set), set} }

// Misplaced is an option of this name that every constructor reports as misuse.
// An option type of one recipe embeds it. The constructor of that recipe takes
// its options out by their type, with [Own], and so does not see them here.
func Misplaced(name string) Option { return option{use{name: name}, func(*Settings) {}} }

// Own takes the options of the type O out of opts.
func Own[O any, Any Option](opts []Any) (own []O, rest []Any) {
	for _, o := range opts {
		if mine, ok := any(o).(O); ok {
			own = append(own, mine)
		} else {
			rest = append(rest, o)
		}
	}
	return own, rest
}

// LockDelay is zksync.WithLockDelay. Only a constructor that takes it out of its options knows what to do with it: [Own].
type LockDelay struct {
	Option
	D time.Duration
}

// Options converts options whose type is of another package. A nil option stays nil.
func Options[O, Any any](opts []Any) []O {
	list := make([]O, len(opts))
	for i, o := range opts {
		list[i], _ = any(o).(O)
	}
	return list
}

// Misuse notes what is wrong with an option. Only the first call counts.
func (s *Settings) Misuse(format string, args ...any) {
	if s.bad == nil {
		s.bad = errs.Misuse("%s", fmt.Sprintf(format, args...))
	}
}

// defaultTimeout is the session timeout that is asked for: see zksync.WithTimeout.
const defaultTimeout = 15 * time.Second

// The defaults of a hand-over inside a process: see zksync.WithHandover.
const (
	defaultHandover   = 32
	DefaultHandoverIn = 10 * time.Millisecond
)

// SettingsOf are the settings of a session, with the first misuse of an option.
func SettingsOf(opts []SessionOption) (Settings, error) {
	s := Settings{Timeout: defaultTimeout}
	for _, o := range opts {
		if o == nil {
			s.Misuse("a nil SessionOption")
			continue
		}
		o.applyToSession(&s)
	}
	return s, s.bad
}

// lockSettings are the settings of a lock. Its options go before those of the
// session, for the options that both take. A misuse of an option is kept in them, also of one that does not suit.
func lockSettings(defaults Settings, opts []Option, suits func(use) bool) Settings {
	s := Settings{
		ACL: defaults.ACL, Name: defaults.Name, Codec: codec.JSON,
		Deadlocks: defaults.Deadlocks, Under: defaults.Under,
		Handover: defaultHandover, HandoverIn: DefaultHandoverIn,
	}
	for _, o := range opts { // in order, so of two equal ones the last counts
		if o == nil {
			s.Misuse("a nil Option")
			continue
		}
		o.apply(&s)
	}
	s.refuse(func(u use) bool { return !suits(u) })
	return s
}

// refuse notes as misuse the options that mean nothing to what they were given to.
func (s *Settings) refuse(misplaced func(use) bool) {
	for _, u := range s.used {
		if misplaced(u) {
			s.Misuse("%s does not belong to this constructor", u.name)
		}
	}
}
