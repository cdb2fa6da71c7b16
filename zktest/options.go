package zktest

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/engine"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// Option changes how a server behaves.
type Option func(*options)

type options struct {
	cfg     engine.Config
	tls     *tls.Config
	verbose func(line string)
	lenient bool

	virtualLimit time.Duration
	seeded       bool
	wrong        error // what an option was given that it cannot work with

	ensemble engine.EnsembleConfig
}

// newOptions returns the defaults as the options change them, or what is wrong with those.
func newOptions(opts []Option) (options, error) {
	o := options{cfg: engine.Config{Tick: 50 * time.Millisecond, MaxTimeout: time.Hour, Heartbeat: "/"}, virtualLimit: 24 * time.Hour}
	for _, opt := range opts {
		opt(&o)
	}
	if err := o.check(); err != nil {
		return o, err
	}
	return o, o.chooseSeed()
}

// WithVersion makes the server behave as a release of ZooKeeper: "3.4", "3.5", "3.6", "3.8" (the default) or
// "3.9". docs/zktest/server.md has the differences.
func WithVersion(version string) Option {
	return func(o *options) {
		release, ok := wire.ReleaseOf(version)
		if !ok {
			o.wrong = fmt.Errorf("zktest: WithVersion(%q): there are %s", version, strings.Join(wire.Series(), ", "))
		}
		o.cfg.Release = release
	}
}

// WithTick sets the tick: sessions expire at the first tick after their timeout. The default is 50 ms.
func WithTick(d time.Duration) Option {
	return func(o *options) { o.cfg.Tick = d }
}

// WithTimeoutLimits sets the bounds of session timeouts. The default is two ticks and one hour.
func WithTimeoutLimits(shortest, longest time.Duration) Option {
	return func(o *options) { o.cfg.MinTimeout, o.cfg.MaxTimeout = shortest, longest }
}

// WithMaxBuffer sets the longest request in bytes (jute.maxbuffer). A longer one closes the connection.
func WithMaxBuffer(n int) Option {
	return func(o *options) { o.cfg.MaxFrame = n }
}

// WithCommitLatency sets the time that a write takes. The default is 0.
func WithCommitLatency(d time.Duration) Option {
	return func(o *options) { o.cfg.CommitLatency = d }
}

// WithContainerInterval sets how often empty containers and expired nodes are removed. The default is a
// minute.
func WithContainerInterval(d time.Duration) Option {
	return func(o *options) { o.cfg.ContainerInterval = d }
}

// WithUnusedContainers removes containers that never had a child when they are older than d.
func WithUnusedContainers(d time.Duration) Option {
	return func(o *options) { o.cfg.ContainerUnused = d }
}

// WithExtendedTypes allows nodes with a time to live.
func WithExtendedTypes() Option {
	return func(o *options) { o.cfg.ExtendedTypes = true }
}

// WithHandshakeTimeout sets how long a connection's first request may take. The default is 10 s.
func WithHandshakeTimeout(d time.Duration) Option {
	return func(o *options) { o.cfg.HandshakeTimeout = d }
}

// WithFourLetterWords sets which four-letter words are answered. The default is all.
func WithFourLetterWords(words ...string) Option {
	return func(o *options) { o.cfg.FourLetterWords = append([]string{}, words...) }
}

// WithSyncLimit sets how long a member takes to notice that it is cut off. The default is five ticks.
func WithSyncLimit(d time.Duration) Option {
	return func(o *options) { o.ensemble.SyncLimit = d }
}

// WithLeaderLimit is [WithSyncLimit] for a leader that has lost the majority.
func WithLeaderLimit(d time.Duration) Option {
	return func(o *options) { o.ensemble.LeaderLimit = d }
}

// WithElectionTime sets how long an election takes. The default is a tenth of a tick.
func WithElectionTime(d time.Duration) Option {
	return func(o *options) { o.ensemble.Election = d }
}

// WithLogger logs refused and dropped connections to l.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.cfg.Logger = l }
}

// WithLeftovers turns off the check for leftovers.
func WithLeftovers() Option {
	return func(o *options) { o.lenient = true }
}

func hex(id int64) string { return fmt.Sprintf("0x%x", id) }
