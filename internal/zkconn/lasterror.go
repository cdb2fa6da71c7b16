package zkconn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// failure is why the newest attempt at a server failed.
type failure struct {
	target       // without an address, a look-up of its name failed
	err    error // never nil
}

// LastError says what became of the attempts to connect: of each server why the newest attempt failed, and of a
// server that has not answered yet, how long the attempt has waited for what. It is nil before the first attempt.
func (c *Client) LastError() error {
	d := &c.dials
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

// fail notes why the newest attempt at a server failed, or its connection ended. mu is held.
func (d *dialLog) fail(t target, err error) {
	d.forget(func(f failure) bool { return f.server == t.server && f.address == t.address })
	d.failures = append(d.failures, failure{t, err})
}

// forget removes failures. mu is held.
func (d *dialLog) forget(which func(failure) bool) {
	d.failures = slices.DeleteFunc(d.failures, which)
}

// round notes what is tried from now on, and how many servers that is. Addresses that a name has lost are forgotten.
func (d *dialLog) round(targets []target, servers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.servers = servers
	d.forget(func(f failure) bool {
		return f.address != "" && !slices.ContainsFunc(targets, func(t target) bool { return t.address == f.address })
	})
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
// a quorum: nobody answers at more than half of the servers of the connect string, and the others close connections.
func quorum(all []failure, servers int) (said string, without bool) {
	count := map[where]int{}
	for _, f := range all {
		if f.address != "" || !slices.ContainsFunc(all, func(g failure) bool { return g.server == f.server && g.address != "" }) {
			count[whereTo(f.err)]++
		}
	}
	shut, dead := count[shutOut], count[nowhere]
	switch {
	case shut == 0 || shut+dead < servers || dead <= servers/2:
		return "the last attempts failed", false
	case shut == 1:
		return fmt.Sprintf("1 of %d servers answers, and has no quorum", servers), true
	}
	return fmt.Sprintf("%d of %d servers answer, and have no quorum", shut, servers), true
}
