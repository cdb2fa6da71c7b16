package servers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is a version of ZooKeeper.
type release struct{ major, minor, patch int }

// releaseOf reads "3.8.4", or "3.9.3-SNAPSHOT".
func releaseOf(version string) (r release, ok bool) {
	numbers, _, _ := strings.Cut(version, "-")
	parts := strings.Split(numbers, ".")
	if len(parts) < 2 || len(parts) > 4 {
		return r, false
	}
	for i, n := range []*int{&r.major, &r.minor, &r.patch} {
		if i >= len(parts) {
			break
		}
		v, err := strconv.ParseUint(parts[i], 10, 16)
		if err != nil {
			return r, false
		}
		*n = int(v)
	}
	return r, true
}

// from reports whether r is that release or a later one.
func (r release) from(major, minor, patch int) bool {
	return slices.Compare([]int{r.major, r.minor, r.patch}, []int{major, minor, patch}) >= 0
}

// faults are what locks suffer from in some releases.
var faults = []struct {
	severity, text, fix string
	in                  func(release) bool
}{
	{Problem, "loses committed data (ZOOKEEPER-4925)", "go to 3.9.4 or later",
		func(r release) bool { return r == release{3, 9, 3} }},
	{Problem, "can lose committed transactions when a follower crashes while it synchronizes (ZOOKEEPER-4785)", "go to 3.8.5 or later, or 3.9.4 or later",
		func(r release) bool { return !r.from(3, 8, 5) || r.from(3, 9, 0) && !r.from(3, 9, 2) }},
	{Note, "has no recursive watches: trees are watched node by node", "go to 3.8.5 or later",
		func(r release) bool { return !r.from(3, 6, 0) }},
	{Note, "has no containers: the directories of unused locks stay", "go to 3.8.5 or later",
		func(r release) bool { return !r.from(3, 5, 0) }},
}

// find appends the findings.
func (r *Report) find(timeout time.Duration) {
	r.Findings = []Finding{}
	r.findServers()
	r.findVersions()
	if least := r.Ensemble.TimeoutMin; least > 0 && timeout > 0 && timeout < time.Duration(least)*time.Millisecond {
		r.add(Problem, "", "set it to that, or more, or lower minSessionTimeout in zoo.cfg",
			"--timeout %v is less than the servers grant: sessions last %v (at least two ticks)", timeout, time.Duration(least)*time.Millisecond)
	}
	if most := r.Ensemble.TimeoutMax; most > 0 && timeout > time.Duration(most)*time.Millisecond {
		r.add(Note, "", "set it to that, or raise maxSessionTimeout in zoo.cfg",
			"--timeout %v is more than the servers grant: sessions last %v", timeout, time.Duration(most)*time.Millisecond)
	}
	if r.Ensemble.Serving > 0 && !r.Tells {
		r.add(Note, "", "add them to it in zoo.cfg, and restart each server",
			"the servers do not tell which clients live: allow cons and dump in 4lw.commands.whitelist")
	}
	r.findDead()
	r.Add()
}

// mostDead is how many clients the findings name.
const mostDead = 10

// findDead names the clients that are probably dead.
func (r *Report) findDead() {
	const fix = "menagerie ls or top shows what it holds, menagerie release takes it away"
	found := 0
	for _, id := range slices.Sorted(maps.Keys(r.Clients)) {
		text, probably := r.Dead(id)
		if !probably {
			continue
		}
		if found++; found <= mostDead {
			r.add(Note, "", fix, "the client with session %s is probably dead: %s", r.Clients[id].Session, text)
		}
	}
	if found > mostDead {
		r.add(Note, "", fix, "%d more clients are probably dead", found-mostDead)
	}
}

// Add adds findings, and puts the problems first.
func (r *Report) Add(more ...Finding) {
	r.Findings = append(r.Findings, more...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return strings.Compare(b.Severity, a.Severity) }) // "problem" > "note"
}

func (r *Report) add(severity, server, fix, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Severity: severity, Text: fmt.Sprintf(format, args...), Fix: fix, Server: server})
}

func (r *Report) findServers() {
	reached := slices.ContainsFunc(r.Servers, func(s Server) bool { return s.Reachable })
	if !r.Ensemble.Quorum && reached {
		r.add(Problem, "", "start servers until more than half of the ensemble run, and look at their logs", "no quorum: no server grants a session")
	}
	var silent []string
	for _, s := range r.Servers {
		switch {
		case !s.Serves && s.Reachable:
			r.add(Problem, s.Addr, "look at its log: can it reach the other servers?", "%s does not serve: %s", s.Addr, s.Error)
		case !s.Serves:
			r.add(Problem, s.Addr, cmp.Or(s.fix, "start it, correct its port or --tls, or take it out of the connect string"), "%s is not reachable: %s", s.Addr, s.Error)
		case s.Mode == "read-only":
			r.add(Problem, s.Addr, "look at its log: can it reach the other servers?", "%s is read-only: it has no quorum", s.Addr)
		}
		if s.ZxidLag > 0 {
			r.add(Problem, s.Addr, "look at its disk and its network; clients there see old states until it has caught up",
				"%s is behind by %d transactions for at least %v", s.Addr, s.ZxidLag, watching)
		}
		if s.Serves && !s.has("srvr") {
			silent = append(silent, s.Addr)
		}
	}
	if !r.Ensemble.Quorum && !reached {
		r.add(Problem, "", "begin with the reasons above; if servers are down, start more than half of the ensemble", "no quorum: no server is reachable")
	}
	if len(silent) > 0 {
		r.add(Note, one(silent), "add srvr to 4lw.commands.whitelist in zoo.cfg, and restart each server",
			"mode and version are unknown: srvr is not answered by %s", strings.Join(silent, ", "))
	}
}

func (r *Report) findVersions() {
	with := map[string][]string{}
	for _, s := range r.Servers {
		if s.Version != "" {
			with[s.Version] = append(with[s.Version], s.Addr)
		}
	}
	versions := slices.Sorted(maps.Keys(with))
	for _, version := range versions {
		v, ok := releaseOf(version)
		if !ok || strings.HasSuffix(version, "-menagerie") { // the in-process server behaves as that release, without its faults
			continue
		}
		for _, f := range faults {
			if f.in(v) {
				r.add(f.severity, one(with[version]), f.fix, "version %s (%s) %s", version, strings.Join(with[version], ", "), f.text)
			}
		}
	}
	if len(versions) > 1 {
		r.add(Note, "", "finish the upgrade: bring all servers to the newest one", "the servers have several versions: %s", strings.Join(versions, ", "))
	}
}

// one is the only one; empty if there are several.
func one(servers []string) string {
	if len(servers) == 1 {
		return servers[0]
	}
	return ""
}
