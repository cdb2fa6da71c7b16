// Package wording is how errors and the command speak of holders and of places in a line.
package wording

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
)

// By names who does something, such as to hold, in a sentence: "held by web-3 pid 4711 for 12s and 2 others". done is the verb;
// since may be zero.
func By[O node.AnyOwner](done string, o O, session int64, since, now time.Time, others int) string {
	text := done + " by " + Who(o, session) + ForHow(since, now)
	switch {
	case others == 1:
		text += " and 1 other"
	case others > 1:
		text += fmt.Sprintf(" and %d others", others)
	}
	return text
}

// Held is By for a holder of whom only a name is known, and who is alone.
func Held(name string, since, now time.Time) string {
	return By("held", node.Owner{Name: name}, 0, since, now, 0)
}

// Who is an owner in a sentence: "web-3 pid 4711". Without an owner it is the ZooKeeper session; 0 for none.
func Who[O node.AnyOwner](owner O, session int64) string {
	o := node.Owner(owner)
	var parts []string
	if o.Host != "" {
		parts = append(parts, o.Host)
	}
	if o.PID != 0 {
		parts = append(parts, "pid "+strconv.Itoa(o.PID))
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, " ")
	case o.Name != "":
		return o.Name
	case session != 0:
		return fmt.Sprintf("session 0x%x", uint64(session))
	}
	return "somebody"
}

// WhoNamed is Who with the owner's name: "web-3 pid 4711 (invoices)".
func WhoNamed[O node.AnyOwner](owner O, session int64) string {
	o := node.Owner(owner)
	text := Who(o, session)
	if o.Name != "" && (o.Host != "" || o.PID != 0) {
		text += " (" + o.Name + ")"
	}
	return text
}

// ForHow is the time since then: " for 12s"; "" if since is zero.
func ForHow(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " for " + Shortly(now.Sub(since))
}

// Shortly rounds a duration for people. It may be negative, because clocks differ.
func Shortly(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	day := 24 * time.Hour
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}

// InLine is a place among those who wait, from 1: "2nd in line".
func InLine(place int) string {
	suffix := "th"
	if place%100 < 11 || place%100 > 13 {
		switch place % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(place) + suffix + " in line"
}

// Plural counts in words: "1 node", "2 nodes".
func Plural(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y") && !strings.HasSuffix(what, "ey"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(what, "y"))
	case strings.HasSuffix(what, "s"):
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Count says how many do something: "1 waits", "2 wait".
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// More is Count at the end of a sentence: "; 2 wait"; "" if n is 0.
func More(n int64, one, many string) string {
	if n == 0 {
		return ""
	}
	return "; " + Count(n, one, many)
}

// Brief is a text of any program as it fits into a sentence: printable, at most 80 bytes.
func Brief(s string) string { return Shorten(node.Printable(s)) }

// Shorten cuts a text after 80 bytes.
func Shorten(s string) string {
	const limit = 80
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "..."
}
