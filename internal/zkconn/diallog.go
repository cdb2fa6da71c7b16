package zkconn

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// dialLog is what a client tells of its attempts to connect: in its log, and to whoever has
// waited for a connection in vain. Each attempt and each loss is logged once.
type dialLog struct {
	err    error // of the newest that failed
	server string
	since  time.Time // of the one under way; zero without one
	doing  string
	known  bool      // a failure has been reported since there was a connection
	up     bool      // there has been a connection
	down   time.Time // since when there is none; zero while there is
}

// LastError says what became of the attempts to connect: why the newest that ended has failed or,
// during the first, how long that has been waiting for what. It is nil before the first.
func (c *Client) LastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch a := &c.tries; {
	case a.err != nil:
		return fmt.Errorf("the last attempt failed: %w", a.err)
	case !a.since.IsZero():
		return fmt.Errorf("%s %s: no answer for %v", a.doing, a.server, shown(time.Since(a.since)))
	}
	return nil
}

// trying is told what an attempt at a server waits for from now on.
func (c *Client) trying(doing, server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries.doing, c.tries.server, c.tries.since = doing, server, time.Now()
}

// failed is told why an attempt at a server failed.
func (c *Client) failed(server string, cause error) {
	c.mu.Lock()
	a := &c.tries
	level := slog.LevelDebug
	switch {
	case !a.known && !a.up:
		level = slog.LevelWarn // whoever waits should know at once; it goes on trying
	case !a.known:
		level = slog.LevelInfo
	}
	a.known, a.since, a.err = true, time.Time{}, fmt.Errorf("%s: %w", server, cause)
	c.mu.Unlock()
	c.cfg.Logger.Log(context.Background(), level, "cannot connect", "server", server, "error", cause)
}

// linked is told of every connection that is past its handshake. What it returns logs that. It is called
// without any lock: the logger is the user's, may block, and may close the session.
func (c *Client) linked(e *Epoch, server string) (log func()) {
	c.mu.Lock()
	a := &c.tries
	again, down := a.up, a.down
	*a = dialLog{up: true}
	c.mu.Unlock()
	args := []any{"server", server, "session", sessionID(e.ID())}
	switch {
	case !again:
		return func() { c.cfg.Logger.Debug("connected", args...) }
	case !down.IsZero():
		args = append(args, "after", shown(time.Since(down)))
		return func() { c.cfg.Logger.Info("connected again", args...) }
	}
	return func() {}
}

// unlinked is told of the loss of a connection past its handshake. What it returns logs that, as linked's.
func (c *Client) unlinked(server string, cause error) (log func()) {
	cause = diagnoseLoss(cause)
	c.fell()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries.err = fmt.Errorf("%s: %w", server, cause)
	if c.state == Closed {
		return func() {}
	}
	return func() { c.cfg.Logger.Info("connection lost", "server", server, "error", cause) }
}

// gone is told of the loss of a session. It logs, so whoever holds must have been told before.
func (c *Client) gone(e *Epoch, cause error) {
	if e.ID() == 0 || c.State() == Closed {
		return
	}
	c.fell()
	c.cfg.Logger.Info("session lost", "session", sessionID(e.ID()), "error", cause)
}

func (c *Client) fell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tries.down.IsZero() {
		c.tries.down = time.Now()
	}
}

// sessionID is an id as the servers' own tools show it.
type sessionID int64

func (id sessionID) String() string { return fmt.Sprintf("0x%x", int64(id)) }

// zkLogger passes the client library's lines on at debug level, without those on what is reported
// here: with the server, the cause and once.
type zkLogger struct{ to *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	for _, known := range []string{"failed to connect to", "authentication failed", "send loop terminated", "recv loop terminated"} {
		if strings.HasPrefix(format, known) {
			return
		}
	}
	l.to.Debug("zk: " + fmt.Sprintf(format, args...))
}
