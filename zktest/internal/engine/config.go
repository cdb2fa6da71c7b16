package engine

import (
	"log/slog"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/tree"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Config says how a server behaves. The zero value is a server with the defaults of a
// standalone ZooKeeper.
type Config struct {
	// Release is what the server behaves as; wire.DefaultRelease if zero.
	Release wire.Release
	// Tick is the unit of session expiry; 2 s if zero. Sessions expire on tick boundaries, counted
	// from New.
	Tick time.Duration
	// MinTimeout and MaxTimeout bound session timeouts; 2 and 20 ticks if zero.
	MinTimeout, MaxTimeout time.Duration
	// ContainerInterval is how often empty containers and nodes whose time to live is over are removed; 60 s if zero.
	ContainerInterval time.Duration
	// ContainerUnused is the time after which a container that never had a child is removed too; never if zero.
	ContainerUnused time.Duration
	// ExtendedTypes allows nodes with a time to live, which a server must be configured for.
	ExtendedTypes bool
	// CommitLatency is the time between the arrival of a write and its commit; requests that
	// arrive meanwhile are in flight together. With zero a write is committed as it arrives.
	CommitLatency time.Duration
	// HandshakeTimeout is how long a connection may take for its first frame; 10 s if zero.
	HandshakeTimeout time.Duration
	// MaxFrame is the largest request accepted; 1 MB less one byte if zero, as in the real server.
	MaxFrame int
	// ManualClock lets the server's clock stand still but for Advance.
	ManualClock bool
	// FourLetterWords are the words that are answered; the others are refused by name. nil is all of them, as
	// is "*"; a real server's default is "srvr".
	FourLetterWords []string
	// Reordering is the longest that a reply or event is kept back; each by another time, drawn with the Seed.
	Reordering time.Duration
	Seed       uint64
	// Logger is told about refused and dropped connections; silent if nil.
	Logger *slog.Logger

	// Intercept judges each request before it runs. It is called without locks and may be
	// called by several connections at once; it must not block.
	Intercept func(*Request) Verdict

	// Heartbeat is the path whose sync clients use as a heartbeat, besides the ping: it overtakes what rules hold. None if empty.
	Heartbeat string

	// The hooks below run while the server's state is locked: they must be quick and must
	// not call the server.

	// InterceptEvent judges each watch event before it is sent, with Fate FateEventLost, or Hold.
	InterceptEvent func(Event) Verdict
	// OnRequest sees each request when it is finished, or lost, before its reply is sent.
	OnRequest func(Request)
	// OnCommit sees each transaction at the instant of its commit, in order, before any
	// reply or watch event leaves.
	OnCommit func(Txn)
	// OnMisuse is called when what RunHook runs calls the server.
	OnMisuse func()
	// OnConn sees connections come and go.
	OnConn func(ConnEvent)
	// OnExpired sees each session that expires, before its ephemerals go.
	OnExpired func(id int64, at time.Time)
}

func (cfg Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	if cfg.Release == (wire.Release{}) {
		cfg.Release, _ = wire.ReleaseOf(wire.DefaultRelease)
	}
	def(&cfg.Tick, 2*time.Second)
	def(&cfg.MinTimeout, 2*cfg.Tick)
	def(&cfg.MaxTimeout, 20*cfg.Tick)
	def(&cfg.ContainerInterval, time.Minute)
	def(&cfg.HandshakeTimeout, 10*time.Second)
	if cfg.MaxFrame <= 0 {
		cfg.MaxFrame = 1<<20 - 1
	}
	return cfg
}

// Event is a watch event on its way to a client, as [Config.InterceptEvent] sees it.
type Event struct {
	Time    time.Time
	Session int64
	Kind    wire.EventType
	Path    string
}

// ConnEvent says that a connection was opened or has ended.
type ConnEvent struct {
	Time    time.Time
	Open    bool
	Remote  string // address with port; "pipe" in memory
	Session int64  // at its end: whose it was; 0 if it never had a session
}

// Txn is one committed transaction, as [Config.OnCommit] sees it.
type Txn struct {
	Zxid    int64
	Time    time.Time // the instant of the commit
	Session int64     // the session that asked for it, or that it ends; 0 if there is none
	Op      wire.Op
	Code    wire.Code // a failed request is a transaction without changes
	Changes []tree.Change
	// First reports that no other member of the ensemble has applied it yet.
	First bool
}
