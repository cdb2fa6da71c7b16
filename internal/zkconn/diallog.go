package zkconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// target is one address of one server.
type target struct {
	server  string // host:port, as in the connect string
	address string // host:port to be dialled: the server, with an address in place of its name
	more    bool   // this round will try another address of the server later
}

// host is the name that a certificate must have.
func (t target) host() string {
	host, _, _ := net.SplitHostPort(t.server)
	return host
}

// String is what people are shown.
func (t target) String() string {
	if t.address == t.server || t.address == "" {
		return t.server
	}
	host, _, _ := net.SplitHostPort(t.address)
	return t.server + " (" + host + ")"
}

// failure is why the newest attempt at a server failed.
type failure struct {
	target       // without an address, a look-up of its name failed
	err    error // never nil
}

// dialLog is what a client reports of its attempts to connect: in its log, and to a caller
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

// round notes what is tried from now on, and how many servers that is. Addresses that a name has lost are forgotten.
func (d *dialLog) round(present []target, servers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.servers = servers
	d.failures = slices.DeleteFunc(d.failures, func(f failure) bool {
		return f.address != "" && !slices.ContainsFunc(present, func(t target) bool { return t.address == f.address })
	})
}

// lookedUp notes how the look-up of the name of a server ended, and logs why it failed.
func (d *dialLog) lookedUp(server string, err error) {
	t := target{server: server}
	if err != nil {
		d.failed(t, err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget(t)
}

// failed notes and logs why an attempt at a server failed. While there is another
// address of that server to be tried, that is not worth more than a line at debug level.
func (d *dialLog) failed(t target, cause error) {
	d.mu.Lock()
	level := slog.LevelDebug
	switch {
	case t.more:
	case !d.known && !d.up:
		level = slog.LevelWarn // a caller of Connect should know at once; the attempts go on
	case !d.known:
		level = slog.LevelInfo
	}
	d.known = d.known || !t.more
	d.since = time.Time{}
	d.note(t, cause)
	d.mu.Unlock()
	d.log.Log(context.Background(), level, "cannot connect", "server", t.String(), "error", cause)
}

// note notes why the newest attempt at a server failed, or its connection ended. mu is held.
func (d *dialLog) note(t target, err error) {
	d.forget(t)
	d.failures = append(d.failures, failure{t, err})
}

// forget removes the failure at an address. mu is held.
func (d *dialLog) forget(t target) {
	d.failures = slices.DeleteFunc(d.failures, func(f failure) bool { return f.server == t.server && f.address == t.address })
}

// linked notes a connection that is past its handshake. The function that it returns logs that. This
// must be called without any lock: the logger is the user's, may block, and may close the session.
func (d *dialLog) linked(id int64, server string) (log func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	down := d.down
	d.failures, d.since, d.known, d.up, d.down = nil, time.Time{}, false, true, time.Time{}
	args := []any{"server", server, "session", sessionID(id)}
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
	d.note(t, cause)
	return func() { d.log.Info("connection lost", "server", t.String(), "error", cause) }
}

// lost logs the loss of a session. A logger may be slow, so it is called only after the holders have been notified.
func (d *dialLog) lost(id int64, cause error) {
	d.mu.Lock()
	d.fell()
	d.mu.Unlock()
	d.log.Info("session lost", "session", sessionID(id), "error", cause)
}

// fell notes since when there is no connection. mu is held.
func (d *dialLog) fell() {
	if d.down.IsZero() {
		d.down = time.Now()
	}
}

// lastError is why the newest attempt at each server failed, and of a server that has not answered
// yet, how long the attempt has waited for what. It is nil before the first attempt.
func (d *dialLog) lastError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	waits := ""
	if !d.since.IsZero() && !slices.ContainsFunc(d.failures, func(f failure) bool { return d.at == "" || f.String() == d.at }) {
		waits = fmt.Sprintf("%s %v", d.doing, shown(time.Since(d.since)))
	}
	switch {
	case len(d.failures) > 0:
		return joined(d.failures, d.servers, waits)
	case waits != "":
		return errors.New(waits)
	}
	return nil
}

// failures is the error of several failures.
type failures struct {
	text string
	all  []error
}

func (f *failures) Error() string   { return f.text }
func (f *failures) Unwrap() []error { return f.all }

// joined is the error of all failures, at some or all of so many servers. waits is what the attempt at another server
// waits for; "" if there is none. Servers with the same cause share its text.
func joined(all []failure, servers int, waits string) error {
	if len(all) == 1 && waits == "" {
		return fmt.Errorf("the last attempt failed: %s: %w", all[0], all[0].err)
	}
	all = slices.SortedFunc(slices.Values(all), func(a, b failure) int { return cmp.Compare(a.String(), b.String()) })
	said, alone := quorum(all, servers)
	var causes []string
	names := map[string][]string{}
	f := new(failures)
	for _, each := range all {
		cause := each.err.Error()
		if known := new(diagnosis); alone && errors.As(each.err, &known) {
			cause = known.text
		}
		if names[cause] == nil {
			causes = append(causes, cause)
		}
		names[cause] = append(names[cause], each.String())
		f.all = append(f.all, each.err)
	}
	for i, cause := range causes {
		causes[i] = strings.Join(names[cause], ", ") + ": " + cause
	}
	if waits != "" {
		causes = append(causes, waits)
	}
	f.text = said + ": " + strings.Join(causes, "; ")
	return f
}

// quorum says in a few words what the failures have in common. It reports whether the servers that answer must be without
// a quorum: more than half of the servers of the connect string do not answer, and the others close connections.
func quorum(all []failure, servers int) (said string, without bool) {
	closing, dead := 0, 0
	for _, f := range all {
		if f.address == "" && slices.ContainsFunc(all, func(g failure) bool { return g.server == f.server && g.address != "" }) {
			continue // an address of it is known, and counts
		}
		var known *diagnosis
		var name *net.DNSError
		switch {
		case errors.As(f.err, &known) && known.guess != "":
			closing++
		case known != nil && known.dead, known == nil && errors.As(f.err, &name):
			dead++
		}
	}
	switch {
	case closing == 0 || closing+dead < servers || dead <= servers/2:
		return "the last attempts failed", false
	case closing == 1:
		return fmt.Sprintf("1 of %d servers answers, and has no quorum", servers), true
	}
	return fmt.Sprintf("%d of %d servers answer, and have no quorum", closing, servers), true
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
