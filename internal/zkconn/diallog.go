package zkconn

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// dialLog is what a client tells of its attempts to connect: in its log, and to a caller
// that has waited for a connection in vain. Each attempt and each loss is logged once.
type dialLog struct {
	log *slog.Logger

	mu     sync.Mutex
	err    error // of the newest attempt that failed
	server string
	since  time.Time // when the attempt under way began to wait for what doing says; zero if there is none
	doing  string    // what it waits for
	known  bool      // a failure has been logged since there was a connection
	up     bool      // there has been a connection before
	down   time.Time // since when there is none; zero while there is
}

// LastError says what became of the attempts to connect: why the newest one that ended has
// failed; or, during the first, how long it has waited for what. It is nil before the first.
func (c *Client) LastError() error {
	d := &c.dials
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return fmt.Errorf("the last attempt failed: %w", d.err)
	case !d.since.IsZero():
		return fmt.Errorf("%s %s: no answer for %v", d.doing, d.server, shown(time.Since(d.since)))
	}
	return nil
}

// trying notes what an attempt at a server waits for from now on.
func (d *dialLog) trying(doing, server string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doing, d.server, d.since = doing, server, time.Now()
}

// failed notes and logs why an attempt at a server failed.
func (d *dialLog) failed(server string, cause error) {
	d.mu.Lock()
	level := slog.LevelDebug
	switch {
	case !d.known && !d.up:
		level = slog.LevelWarn // whoever waits should know at once; the attempts go on
	case !d.known:
		level = slog.LevelInfo
	}
	d.known, d.since, d.err = true, time.Time{}, fmt.Errorf("%s: %w", server, cause)
	d.mu.Unlock()
	d.log.Log(context.Background(), level, "cannot connect", "server", server, "error", cause)
}

// linked notes a connection that is past its handshake. The function that it returns logs that. This
// must be called without any lock: the logger is the user's, may block, and may close the session.
func (d *dialLog) linked(session int64, server string) (log func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	down := d.down
	d.err, d.since, d.known, d.up, d.down = nil, time.Time{}, false, true, time.Time{}
	args := []any{"server", server, "session", sessionID(session)}
	if down.IsZero() {
		return func() { d.log.Debug("connected", args...) }
	}
	args = append(args, "after", shown(time.Since(down)))
	return func() { d.log.Info("connected again", args...) }
}

// unlinked notes the loss of a connection past its handshake.
// The function that it returns logs that, as with linked.
func (d *dialLog) unlinked(server string, cause error) (log func()) {
	cause = diagnoseLoss(cause)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fell()
	d.err = fmt.Errorf("%s: %w", server, cause)
	return func() { d.log.Info("connection lost", "server", server, "error", cause) }
}

// lost logs the loss of a session. A logger may be slow, so it is called only after the holders have been told.
func (d *dialLog) lost(session int64, cause error) {
	d.mu.Lock()
	d.fell()
	d.mu.Unlock()
	d.log.Info("session lost", "session", sessionID(session), "error", cause)
}

// fell notes since when there is no connection. mu is held.
func (d *dialLog) fell() {
	if d.down.IsZero() {
		d.down = time.Now()
	}
}

// sessionID is a session id, which is shown as the servers' own tools show it.
type sessionID int64

func (id sessionID) String() string { return fmt.Sprintf("0x%x", int64(id)) }

// zkLogger passes the client library's lines on at debug level. It leaves out those
// about events that this package logs itself: once, and with the server and the cause.
type zkLogger struct{ to *slog.Logger }

func (l zkLogger) Printf(format string, args ...any) {
	for _, known := range []string{"failed to connect to", "authentication failed", "send loop terminated", "recv loop terminated"} {
		if strings.HasPrefix(format, known) {
			return
		}
	}
	l.to.Debug("zk: " + fmt.Sprintf(format, args...))
}
