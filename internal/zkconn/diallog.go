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

	mu       sync.Mutex
	failures []failure // the newest one of each server since there was a connection
	servers  int       // how many there are, as far as is known
	since    time.Time // when the attempt under way began to wait for what doing says; zero if there is none
	doing    string    // what it waits for, in words before "2s"
	at       string    // its server; "" for a look-up of names

	known bool      // a failure has been logged since there was a connection
	up    bool      // there has been a connection before
	down  time.Time // since when there is none; zero while there is
}

// trying notes what is waited for, and since when. at is the server that is dialled, "" for a look-up.
func (d *dialLog) trying(at, doing string, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.doing, d.since = at, doing, since
}

// slowLookUp is how long a look-up may take without being reported.
const slowLookUp = time.Second

// lookedUp notes and logs how the look-up of the name of a server ended.
func (d *dialLog) lookedUp(server string, took time.Duration, err error) {
	if err != nil {
		d.failed(target{server: server}, err)
		return
	}
	d.mu.Lock()
	d.forget(func(f failure) bool { return f.server == server && f.address == "" })
	d.mu.Unlock()
	if took >= slowLookUp {
		d.log.Info("looking up a name took long", "server", server, "took", shown(took))
	}
}

// failed notes and logs why an attempt at a server failed. While there is another
// address of that server to be tried, that is not worth more than a line at debug level.
func (d *dialLog) failed(t target, cause error) {
	server := t.String()
	d.mu.Lock()
	level := slog.LevelDebug
	switch {
	case t.more:
	case !d.known && !d.up:
		level = slog.LevelWarn // whoever waits should know at once; the attempts go on
	case !d.known:
		level = slog.LevelInfo
	}
	d.known = d.known || !t.more
	d.since = time.Time{}
	d.fail(t, cause)
	d.mu.Unlock()
	d.log.Log(context.Background(), level, "cannot connect", "server", server, "error", cause)
}

// linked notes a connection that is past its handshake. The function that it returns logs that. This
// must be called without any lock: the logger is the user's, may block, and may close the session.
func (d *dialLog) linked(session int64, server string) (log func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	down := d.down
	d.failures, d.since, d.known, d.up, d.down = nil, time.Time{}, false, true, time.Time{}
	args := []any{"server", server, "session", sessionID(session)}
	if down.IsZero() {
		return func() { d.log.Debug("connected", args...) }
	}
	args = append(args, "after", shown(time.Since(down)))
	return func() { d.log.Info("connected again", args...) }
}

// unlinked notes the loss of a connection past its handshake.
// The function that it returns logs that, as with linked.
func (d *dialLog) unlinked(t target, cause error) (log func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fell()
	d.fail(t, cause)
	return func() { d.log.Info("connection lost", "server", t.String(), "error", cause) }
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
