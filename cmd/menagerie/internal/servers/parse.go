package servers

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The answers to the four-letter words, as ZooKeeper 3.4 to 3.9 print them. A server may send anything: what is not in the known form is left out.

// refusal is what a server answers to a word that is not in its 4lw.commands.whitelist.
const refusal = " is not executed because it is not in the whitelist"

// idle is what a server answers to any word while it has no quorum.
const idle = "This ZooKeeper instance is not currently serving requests"

// vitals are what srvr says.
type vitals struct {
	version, mode string
	zxid          uint64
	hasZxid       bool
	connections   int   // -1 for unknown
	nodes         int64 // -1 for unknown
}

// parseSrvr reports whether the text is an answer to srvr.
func parseSrvr(text string) (v vitals, ok bool) {
	v.connections, v.nodes = -1, -1
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found {
			continue
		}
		switch key {
		case "Zookeeper version":
			v.version = cleanVersion(value)
			ok = true
		case "Mode":
			v.mode = word(value)
		case "Zxid":
			v.zxid, v.hasZxid = parseHex(value)
		case "Connections":
			v.connections = int(number(value, math.MaxInt32))
		case "Node count":
			v.nodes = number(value, math.MaxInt64)
		}
	}
	return v, ok
}

// cleanVersion is a version without the hash of its commit and the date: "3.8.4", "3.9.3-SNAPSHOT", "3.8.0-menagerie".
func cleanVersion(s string) string {
	s, _, _ = strings.Cut(s, ",")
	release, rest, _ := strings.Cut(strings.TrimSpace(s), "-")
	suffix, _, _ := strings.Cut(rest, "-")
	if word(release) == "" {
		return ""
	}
	if word(suffix) == "" || len(suffix) > 12 { // a hash has more
		return release
	}
	return release + "-" + suffix
}

// word is a short text of letters, digits, dots and dashes; empty if it is anything else.
func word(s string) string {
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '-'
	}
	if len(s) > 40 || strings.ContainsFunc(s, odd) {
		return ""
	}
	return s
}

// number is a number from 0 to most; -1 if it is anything else.
func number(s string, most int64) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > most {
		return -1
	}
	return n
}

func parseHex(s string) (uint64, bool) {
	digits, ok := strings.CutPrefix(s, "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	return n, ok && err == nil
}

func parseID(s string) (int64, bool) {
	n, ok := parseHex(s)
	return int64(n), ok && n != 0
}

// link is a connection of a client, as cons says.
type link struct {
	session int64
	address string
	timeout int64 // ms
	est     int64 // when it began, in ms of the server's calendar; -1 for unknown
	lresp   int64 // when the server last answered, in ms of a clock of its own; 0 for not yet, -1 for unknown
}

// parseCons returns the connections that have a session.
func parseCons(text string) (all []link) {
	for line := range strings.Lines(text) {
		line, closed := strings.CutSuffix(strings.TrimSpace(line), ")")
		open := strings.LastIndexByte(line, '(')
		if !closed || open < 0 {
			continue
		}
		c := link{timeout: -1, est: -1, lresp: -1, address: address(line[:open])}
		for field := range strings.SplitSeq(line[open+1:], ",") {
			key, value, _ := strings.Cut(field, "=")
			switch key {
			case "sid":
				c.session, _ = parseID(value)
			case "to":
				c.timeout = number(value, math.MaxInt32)
			case "est":
				c.est = number(value, math.MaxInt64)
			case "lresp":
				c.lresp = number(value, math.MaxInt64)
			}
		}
		if c.session != 0 {
			all = append(all, c)
		}
	}
	return all
}

// address is the peer's, without the slash in front and the socket's state behind; empty if it is odd.
func address(s string) string {
	if i := strings.LastIndexByte(s, '['); i > 0 && strings.HasSuffix(s, "]") {
		s = s[:i]
	}
	s = s[strings.LastIndexByte(s, '/')+1:] // Java prints host/address
	if len(s) > 100 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return s
}

// dump is what dump says of sessions.
type dump struct {
	decides  bool                // it comes from the leader, or a server that stands alone
	expires  map[int64]time.Time // at which second each expires, by the server's calendar and in its time zone
	timeouts map[int64]int64     // ms, as the other servers list them
	owners   map[int64]bool      // sessions with ephemeral nodes
}

// parseDump reports whether the text is an answer to dump.
func parseDump(text string) (d dump, ok bool) {
	d = dump{expires: map[int64]time.Time{}, timeouts: map[int64]int64{}, owners: map[int64]bool{}}
	part, at := "", time.Time{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "SessionTracker dump:"):
			part, ok = "sessions", true
		case strings.HasPrefix(line, "ephemeral nodes dump:"):
			part = "owners"
		case strings.HasPrefix(line, "Connections dump:"):
			return d, ok
		case part == "sessions" && strings.Contains(line, "Session Sets ("):
			d.decides = d.decides || !strings.HasPrefix(line, "Local ") // any server decides about its local ones
		case part == "sessions":
			at = d.session(line, at)
		case part == "owners":
			if id, valid := parseID(strings.TrimSuffix(line, ":")); valid && strings.HasSuffix(line, ":") {
				d.owners[id] = true
			}
		}
	}
	return d, ok
}

// session reads a line of the first part, and returns the instant for the lines that follow.
func (d *dump) session(line string, at time.Time) time.Time {
	if _, date, found := strings.Cut(line, " expire at "); found {
		return javaDate(strings.TrimSuffix(date, ":"))
	}
	name, timeout, listed := strings.Cut(line, "\t")
	if id, ok := parseID(name); ok && listed {
		d.timeouts[id] = number(strings.TrimSuffix(timeout, "ms"), math.MaxInt32)
	}
	if id, ok := parseID(timeout); ok && name == "" {
		d.expires[id] = at
	}
	return at
}

// javaDate reads "Sat Jan 01 00:00:06 CET 2000" as if it were UTC; zero if it is anything else. Only differences between such times have a meaning.
func javaDate(s string) time.Time {
	f := strings.Fields(s)
	if len(f) != 6 {
		return time.Time{}
	}
	t, err := time.Parse("Jan 02 15:04:05 2006", f[1]+" "+f[2]+" "+f[3]+" "+f[5])
	if err != nil {
		return time.Time{}
	}
	return t
}

// orphans are the sessions that own nodes and do not exist.
func (d *dump) orphans() (ids []int64) {
	if !d.decides {
		return nil
	}
	for id, owns := range d.owners {
		if _, exists := d.expires[id]; owns && !exists {
			ids = append(ids, id)
		}
	}
	return ids
}

// parseConf returns the bounds of session timeouts in ms, and the tick; 0 for unknown.
func parseConf(text string) (least, most, tick int64) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		n := max(0, number(value, math.MaxInt32))
		switch key {
		case "minSessionTimeout":
			least = n
		case "maxSessionTimeout":
			most = n
		case "tickTime":
			tick = n
		}
	}
	return least, most, tick
}
