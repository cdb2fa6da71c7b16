package zkconn

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// Client keeps one session alive at a time, and opens the next one when it ends.
type Client struct {
	cfg   Config
	pace  dialPace
	most  maxBuffer
	names *names

	granted atomic.Int64 // the session timeout that the servers granted last, a time.Duration; 0 before that

	madeChroot atomic.Bool  // it has been logged
	seen       atomic.Int64 // the greatest zxid that an answer in any of its sessions has told

	identity *identity
	unknown  unknownOps

	running context.Context // ends when Stop begins
	halt    context.CancelFunc
	closing context.Context // ends when nothing may be tried any more to end sessions
	giveUp  context.CancelFunc
	runs    sync.WaitGroup // the run loop, and the goroutines that Stop waits for
	dials   dialLog

	mu      sync.Mutex
	state   State
	epoch   *Epoch        // the newest
	entered *Epoch        // the epoch whose state is in state
	moved   chan struct{} // closed and replaced when the state changes, stale grows, or the servers refuse us
	refused error         // why the servers refuse us for good; nil if they do not
	future  *history      // the list that the next change of state is added to

	stale  []*staleSession // sessions of the past that are not yet ended, the oldest first
	ending bool            // endStale runs

	lasting int // how much must be done before the session may be ended: see Lasting
}

// Open starts a client; it does not wait for a connection.
func Open(cfg Config) *Client {
	c := newClient(cfg)
	c.runs.Go(c.run)
	return c
}

func newClient(cfg Config) *Client {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
		if cfg.Resolve == nil {
			cfg.Resolve = resolve
		}
	}
	c := &Client{cfg: cfg, identity: newIdentity(), moved: make(chan struct{}), future: newHistory()}
	c.names = newNames(c)
	c.dials.log = cfg.Logger
	c.running, c.halt = context.WithCancel(context.Background())
	c.closing, c.giveUp = context.WithCancel(context.Background())
	return c
}

// timeout is the session timeout that the servers granted last or, before that, the one to ask for.
func (c *Client) timeout() time.Duration {
	return cmp.Or(time.Duration(c.granted.Load()), c.cfg.Timeout)
}

// longestRest is about the longest pause before another session is asked for.
const longestRest = 5 * time.Second

// run opens one epoch after the other. Only one that lasted ends the growth of the pauses between them: what
// ends a session soon may do so again, whatever it could do before, and each of them costs the servers writes.
func (c *Client) run() {
	for _, d := range c.cfg.Predecessors {
		c.closeStale(d)
	}
	var pace Pace
	var began time.Time
	for n := int64(1); ; n++ {
		if time.Since(began) >= longestRest {
			pace = Pace{Free: 2, First: 20 * time.Millisecond, Most: longestRest}
		}
		sleep(pace.Next(), c.running.Done())
		began = time.Now()
		e, err := c.open(n)
		if err != nil {
			c.refuse(refusedUs, err)
			return
		}
		select {
		case <-e.over:
			// The next epoch ends this session on the servers, which then grant to others. So it must not
			// begin before every holder has been told, even if the goroutine that tells them is delayed.
			<-e.told
		case <-c.running.Done():
			e.awaitGreeting()
		}
		var at *target
		if e.Cause() == nil && e.Linked() {
			at = e.address()
			e.shutdown(true)
		} else {
			// This is not waited for: the client library can take
			// a second to notice that its connection is gone.
			c.runs.Go(func() { e.shutdown(false) })
		}
		if c.running.Err() != nil || c.Refused() != nil { // no other epoch follows
			c.endAll(c.closing, e, at)
			return
		}
		// The session was given up here, but the servers may still
		// have it: end it there, or others wait for its timeout.
		if dead := e.remains(); dead != nil {
			c.closeStale(*dead)
		} else {
			c.ended(e.ID())
		}
	}
}

// open starts the client library for one epoch.
func (c *Client) open(n int64) (*Epoch, error) {
	e := c.newEpoch(n)
	e.hosts = &hosts{epoch: e, quit: make(chan struct{})}
	c.mu.Lock()
	c.epoch = e
	c.mu.Unlock()
	_, events, err := zk.Connect(c.cfg.Servers, c.cfg.Timeout,
		func(zc *zk.Conn) { e.conn = zc }, // before its loop starts
		sendLittle,
		zk.WithDialer(e.hosts.dial),
		zk.WithHostProvider(e.hosts),
		zk.WithLogger(zkLogger{c.cfg.Logger}),
		zk.WithLogInfo(false),
	)
	if err != nil {
		return nil, err
	}
	e.events = events
	e.heartbeat()
	if !e.ahead() {
		e.Go(e.prove)
	}
	return e, nil
}

// Epoch returns the newest epoch as soon as it has a connection. It blocks
// until then, or until ctx ends, or the client is closed or refused for good.
func (c *Client) Epoch(ctx context.Context) (*Epoch, error) {
	for {
		c.mu.Lock()
		e, moved, state, refused := c.epoch, c.moved, c.state, c.refused
		c.mu.Unlock()
		switch {
		case refused != nil:
			return nil, refused
		case state == Closed:
			return nil, ErrClosed
		case state == Connected && e != nil && e.Connection() != 0 && e.Cause() == nil && e.ahead():
			return e, nil // in all other cases a change is on its way, which closes moved
		}
		select {
		case <-moved:
		case <-ctx.Done():
			if state != Connected {
				errs.Failed(ctx, 0, c.LastError())
			}
			return nil, context.Cause(ctx)
		}
	}
}

// Current is the newest epoch that had a session, connected or not; nil if none had.
func (c *Client) Current() *Epoch {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entered
}

// refusedUs is the log message of a client that the servers refuse.
const refusedUs = "the servers refuse this client"

// refuse records that another attempt would be refused, too. what says by whom, for the log.
func (c *Client) refuse(what string, err error) {
	c.mu.Lock()
	if c.refused == nil {
		c.refused = err
	}
	e := c.epoch
	c.wake()
	c.mu.Unlock()
	time.AfterFunc(Closing, c.giveUp)
	if e != nil {
		e.lose(err)
	}
	c.cfg.Logger.Error(what, "error", err) // it may be slow, so holders are told first
}

// Refused is why the servers refuse this client for good; nil if they do not.
func (c *Client) Refused() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}
