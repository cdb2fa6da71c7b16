package zkconn

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
)

// outages logs what becomes of a client's connection. An outage of a second or more is two lines: a warning after that second,
// and a line when the connection is back. A session that was replaced without such an outage is one line. The rest is for the
// debug level.
//
// No line comes within a [logs.Pause] of the last one by the same cause. It is not dropped, since an hour without servers must
// be a warning, whatever was before: it comes later, if it is still true then. So what the lines have said is kept beside
// what is, and due compares the two at each change, and again when a line had to wait.
type outages struct {
	log *logs.Log
	why func() error // why the attempts since the loss have failed; nil if there was none

	mu      sync.Mutex
	server  string        // of the newest connection
	session int64         // of the newest connection; 0 before the first
	down    time.Time     // since when there is no connection; zero while there is, and before the first attempt has failed
	away    time.Duration // for how long there was none before the newest
	cause   error         // why the newest connection ended
	lost    error         // which session was lost last, and why

	warned bool  // the newest line says that there is no connection
	said   int64 // the session that the lines have said to be in use; before that the first one

	timer  *time.Timer // calls report when a line is due
	over   bool        // nothing is to be logged any more
	lines  []func()    // what is to be logged, in the order of the events
	writes bool        // a goroutine logs them
}

// longOutage is for how long there must be no connection before a person should know.
const longOutage = time.Second

// The causes of the lines. Each warning is followed by the line that ends it, and waits for the pause after the last of these.
const (
	begins   = "outage begins"
	ends     = "outage ends"
	replaced = "session replaced"
)

// connected notes a connection that is past its handshake. log logs it: it must be called without any lock, because the
// logger is the user's, may block, and may close the session.
func (o *outages) connected(server string, session int64) (log func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.server, o.session = server, session
	if o.said == 0 && !o.warned {
		o.said = session
	}
	if !o.down.IsZero() {
		o.away, o.down = shown(time.Since(o.down)), time.Time{}
	}
	return func() {
		if !o.report() {
			o.log.Debug("connected", "server", server, "session", logs.ID(session))
		}
	}
}

// disconnected notes that the connection has ended. log is that of connected.
func (o *outages) disconnected(cause error) (log func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fell(cause)
	server, session := o.server, o.session
	return func() {
		o.log.Debug("disconnected", "server", server, "session", logs.ID(session), "error", cause)
		o.report()
	}
}

// ended notes the loss of a session. log is that of connected.
func (o *outages) ended(session int64, cause error) (log func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	why := errors.New(plain(cause))
	o.fell(why)
	o.lost = fmt.Errorf("session %s was lost: %w", logs.ID(session), why)
	return func() {
		o.log.Debug("session lost", "session", logs.ID(session), "error", why)
		o.report()
	}
}

// fell notes since when there is no connection, and why. mu is held.
func (o *outages) fell(cause error) {
	if o.down.IsZero() {
		o.down, o.cause = time.Now(), cause
	}
}

// failed logs an attempt that has failed. Before the first connection that is a warning, once and at once: a caller of
// Connect should know. While there is another address of that server to be tried, it is not.
func (o *outages) failed(t target, cause error) {
	o.mu.Lock()
	first := !t.more && o.session == 0 && !o.warned && !o.over
	if first {
		o.down, o.warned = time.Now(), true
		o.lines = append(o.lines, func() {
			o.log.Once(begins, "").Warn("cannot connect", "server", t.String(), "error", cause)
		})
	}
	o.mu.Unlock()
	if !first {
		o.log.Debug("cannot connect", "server", t.String(), "error", cause)
	}
	o.write()
}

// stop ends what is logged, at once, but for a line that is being logged.
func (o *outages) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over, o.lines = true, nil
	if o.timer != nil {
		o.timer.Stop()
	}
}

// report logs the line that is due, if there is one, and has itself called when the next one is.
func (o *outages) report() (now bool) {
	o.mu.Lock()
	if o.timer != nil {
		o.timer.Stop()
	}
	line, at := o.due()
	switch wait := time.Until(at); {
	case line == nil || o.over:
	case wait > 0:
		o.timer = time.AfterFunc(wait, func() { o.report() })
	default:
		now = true
		if o.warned = !o.down.IsZero(); !o.warned {
			o.said = o.session
		}
		o.lines = append(o.lines, line)
	}
	o.mu.Unlock()
	o.write()
	return now
}

// due is the line that is missing, and when it is due; nil if there is none. mu is held.
func (o *outages) due() (line func(), at time.Time) {
	up, first, same := o.down.IsZero(), o.said == 0, o.said == o.session
	server, session, after, cause, lost := o.server, logs.ID(o.session), o.away, o.cause, o.lost
	switch {
	case !up && !o.warned:
		if at = o.down.Add(longOutage); o.log.Due(ends, "").After(at) {
			at = o.log.Due(ends, "")
		}
		line = func() {
			o.log.Once(begins, "").Warn("connection lost", "server", server, "session", session, "error", o.since(cause))
		}
	case up && o.warned && first:
		line = func() { o.log.Once(ends, "").Info("connected", "server", server, "session", session, "after", after) }
	case up && o.warned && same:
		line = func() {
			o.log.Once(ends, "").Info("connected again", "server", server, "session", session, "after", after)
		}
	case up && !same:
		why := replaced
		if o.warned {
			why = ends
		} else {
			at = o.log.Due(replaced, "")
		}
		line = func() {
			o.log.Once(why, "").Info("connected again in a new session", "server", server, "session", session, "after", after, "error", lost)
		}
	}
	return line, at
}

// since is the cause of an outage, and what has become of the attempts to end it.
func (o *outages) since(cause error) error {
	if attempts := o.why(); attempts != nil {
		return fmt.Errorf("%w; %w", cause, attempts)
	}
	return cause
}

// write logs the lines: one goroutine at a time, in order, and without the lock. Another one leaves its lines to the first.
func (o *outages) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writes {
		return
	}
	o.writes = true
	for len(o.lines) > 0 {
		line := o.lines[0]
		o.lines = o.lines[1:]
		o.mu.Unlock()
		line()
		o.mu.Lock()
	}
	o.writes = false
}
