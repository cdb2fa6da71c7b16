package zkcron

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/go-menagerie/menagerie/internal/logs"
)

// schedule says when the ticks of a job are.
type schedule interface {
	// next is the first tick after t.
	next(t time.Time) time.Time
}

// periodic has a tick at each multiple of its period since the Unix epoch.
type periodic time.Duration

func (p periodic) next(t time.Time) time.Time {
	into := time.Duration(t.UnixNano() % int64(p))
	if into < 0 { // before the epoch
		into += time.Duration(p)
	}
	return t.Add(time.Duration(p) - into)
}

// fields parses the five fields of a spec.
var fields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// crontab has a tick at each instant at which the clocks of its zone show a time of the spec. The spec itself is in UTC:
// [cron.SpecSchedule.Next] leaves ticks out where the clocks of a zone change at midnight, or by half an hour.
type crontab struct {
	*cron.SpecSchedule
	zone *time.Location
}

// horizon is how far one search goes. Next looks five years ahead; around a year like 2100 the next 29th of
// February is farther away.
const horizon = 4 * 365 * 24 * time.Hour

// never is after how many years the search stops: the clocks skip the time of the spec in every year.
const never = 100

func (c crontab) next(t time.Time) time.Time {
	t = t.In(c.zone)
	for period, end := t, t.AddDate(never, 0, 0); period.Before(end); {
		// Until the clocks change, local time is UTC and an offset. So the spec is searched in UTC, from the local time on.
		_, offset := period.Zone()
		ahead := time.Duration(offset) * time.Second
		_, change := period.ZoneBounds()
		if !change.IsZero() && !change.After(period) { // package time takes the years of a rule for ones of 365 days
			change = period.Truncate(24 * time.Hour).Add(24 * time.Hour)
		}
		n := c.Next(t.UTC().Add(ahead)).Add(-ahead)
		found := n.After(t) // it returns the zero time if it finds none
		switch {
		case found && (change.IsZero() || n.Before(change)):
			return n.In(c.zone)
		case !change.IsZero() && (found || change.Before(t.Add(horizon))):
			t, period = change.Add(-time.Nanosecond), change // the change may be a tick itself
		default:
			t = t.Add(horizon)
			period = t
		}
	}
	return t.In(c.zone)
}

// zoneName is what all processes that use a zone agree on: its name in the time zone data, or its offset if its clocks never change,
// because time.FixedZone may give it any name.
func zoneName(zone *time.Location) string {
	begin, end := time.Unix(0, 0).In(zone).ZoneBounds()
	_, offset := time.Unix(0, 0).In(zone).Zone()
	if zone == time.UTC || !begin.IsZero() || !end.IsZero() {
		return zone.String()
	}
	return time.Unix(0, 0).In(time.FixedZone("", offset)).Format("UTC-07:00:00")
}

// descriptors are the names of some specs, as robfig/cron has them. A job keeps the spec and not the name, so
// "@daily" and "0 0 * * *" are the same schedule for all processes, also for those of versions without descriptors.
var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parse reads a spec of five fields, or a descriptor. zone is the one that was given beside it; nil for none. It returns the
// schedule, the five fields with single spaces, and the zone.
func parse(spec string, zone *time.Location) (s schedule, text string, loc *time.Location, err error) {
	if loc = zone; loc == nil {
		loc = time.UTC
	}
	words := strings.Fields(spec)
	if len(words) > 0 {
		// The parser would panic on a zone with nothing behind it.
		if name, there := strings.CutPrefix(strings.TrimPrefix(words[0], "CRON_"), "TZ="); there {
			switch loc, err = time.LoadLocation(name); {
			case name == "" || name == "Local":
				err = errors.New("a time zone without a name that all machines share")
			case err == nil && zone != nil && zone.String() != name:
				err = fmt.Errorf("two time zones: %s and %s", name, zone)
			}
			words = words[1:]
		}
	}
	text = strings.Join(words, " ")
	if err != nil {
		return nil, text, time.UTC, err
	}
	if d, there := strings.CutPrefix(text, "@every "); there {
		return parsePeriod(d, loc)
	}
	if d, there := descriptors[text]; there {
		text = d
	} else if strings.HasPrefix(text, "@") {
		return nil, text, loc, fmt.Errorf("an unknown descriptor; use one of %s or \"@every 5m\"", strings.Join(slices.Sorted(maps.Keys(descriptors)), ", "))
	}
	parsed, err := fields.Parse(text)
	if err != nil {
		return nil, text, loc, err
	}
	ticks, ok := parsed.(*cron.SpecSchedule)
	if !ok || ticks.Next(time.Unix(0, 0)).IsZero() {
		return nil, text, loc, errors.New("the schedule never fires")
	}
	ticks.Location = time.UTC
	return crontab{ticks, loc}, text, loc, nil
}

// parsePeriod reads what follows "@every". All processes agree on the ticks in each zone, so the zone is only that in which
// the function gets their times.
func parsePeriod(text string, loc *time.Location) (schedule, string, *time.Location, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return nil, text, loc, err
	case d < time.Millisecond: // a tick costs two requests
		return nil, text, loc, fmt.Errorf("a period of %v; it must be a millisecond at least", d)
	}
	return periodic(d), "@every " + d.String(), loc, nil
}

// tolerance is how much a clock may differ from the clock of the servers' leader.
const tolerance = 5 * time.Second

// clock is the time of day by which ticks begin: this machine's or, if that is wrong, the leader's.
type clock struct {
	wall func() time.Time

	mu     sync.Mutex
	offset time.Duration // from the machine's clock to the leader's; 0 within the tolerance
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Without a monotonic reading, so that it follows the machine's clock when that is set.
	return c.wall().Round(0).Add(c.offset)
}

// heard compares the clocks. The leader stamped a write with mtime, in milliseconds, between sent and received by the
// machine's clock. So the difference is known within the time that the answer took, and only what is certain counts.
func (c *clock) heard(sent, received time.Time, mtime int64, log *logs.Log) {
	first := time.UnixMilli(mtime)
	last := first.Add(time.Millisecond)
	var offset time.Duration
	switch {
	case first.After(received):
		offset = first.Sub(received)
	case last.Before(sent):
		offset = last.Sub(sent)
	}
	if offset.Abs() <= tolerance {
		offset = 0
	}
	c.mu.Lock()
	was := c.offset
	c.offset = offset
	c.mu.Unlock()
	if offset != 0 && was == 0 {
		log.Once("clock", "").Warn("the clock of this machine is wrong, going by the servers' clock", "reason", fmt.Sprintf("it is %v ahead", -offset))
	}
}
