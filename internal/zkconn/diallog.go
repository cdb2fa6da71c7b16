package zkconn

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/logs"
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
	used   bool  // the connection was in use: no attempt has failed since it ended
}

// dialLog is what a client reports of its attempts to connect: in its log, and to a caller
// that has waited for a connection in vain.
type dialLog struct {
	outages outages

	mu       sync.Mutex
	failures []failure // the newest one of each server since there was a connection
	servers  int       // how many there are, as far as is known
	since    time.Time // when the attempt under way began to wait for what doing says; zero if there is none
	doing    string    // what it waits for, in words before "2s"
	at       string    // its server; "" for a look-up of names
	guess    string    // what may be behind the silence
}

// trying notes what is waited for, since when, and what may be behind a long wait. at is the server that is dialled, "" for a look-up.
func (d *dialLog) trying(at, doing, guess string, since time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at, d.doing, d.guess, d.since = at, doing, guess, since
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

// failed notes and logs why an attempt at a server failed.
func (d *dialLog) failed(t target, cause error) {
	d.mu.Lock()
	d.since = time.Time{}
	d.note(failure{target: t, err: cause})
	d.mu.Unlock()
	d.outages.failed(t, cause)
}

// note notes why the newest attempt at a server failed, or its connection ended. mu is held.
func (d *dialLog) note(f failure) {
	d.forget(f.target)
	d.failures = append(d.failures, f)
}

// forget removes the failure at an address. mu is held.
func (d *dialLog) forget(t target) {
	d.failures = slices.DeleteFunc(d.failures, func(f failure) bool { return f.server == t.server && f.address == t.address })
}

// linked notes a connection that is past its handshake. log is that of [outages.connected].
func (d *dialLog) linked(id int64, server string) (log func()) {
	d.mu.Lock()
	d.failures, d.since = nil, time.Time{}
	d.mu.Unlock()
	return d.outages.connected(server, id)
}

// unlinked notes the loss of a connection past its handshake. log is that of [outages.connected].
func (d *dialLog) unlinked(t target, cause error) (log func()) {
	d.mu.Lock()
	d.note(failure{target: t, err: cause, used: true})
	d.mu.Unlock()
	return d.outages.disconnected(cause)
}

// lastError is why the newest attempt at each server failed, and of a server that has not answered
// yet, how long the attempt has waited for what. It is nil before the first attempt.
func (d *dialLog) lastError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reasons(d.failures)
}

// attempts is lastError without the end of a connection that was in use.
func (d *dialLog) attempts() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reasons(slices.DeleteFunc(slices.Clone(d.failures), func(f failure) bool { return f.used }))
}

// reasons is the error of these failures, and of the attempt under way. mu is held.
func (d *dialLog) reasons(all []failure) error {
	waits := ""
	if !d.since.IsZero() && !slices.ContainsFunc(all, func(f failure) bool { return d.at == "" || f.String() == d.at }) {
		waits = fmt.Sprintf("%s %v: %s", d.doing, shown(time.Since(d.since)), d.guess)
	}
	switch {
	case len(all) > 0:
		return joined(all, d.servers, waits)
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
		if known := new(diagnosis); alone && errors.As(each.err, &known) && known.guess != "" {
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

// zkLogger passes the client library's lines on at debug level. It leaves out those
// about events that this package logs itself: once, and with the server and the cause.
type zkLogger struct{ log *logs.Log }

func (l zkLogger) Printf(format string, args ...any) {
	for _, known := range []string{"failed to connect to", "authentication failed", "send loop terminated", "recv loop terminated"} {
		if strings.HasPrefix(format, known) {
			return
		}
	}
	l.log.Debug("the client library has logged a line", "error", fmt.Errorf(format, args...))
}
