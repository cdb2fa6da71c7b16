package zkcron

import (
	"archive/zip"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAPeriodIsAlignedToTheEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(400*24*time.Hour)).Draw(t, "d"))
		at := time.Unix(0, rapid.Int64Range(-1e18, 4e18).Draw(t, "at"))
		next := periodic(d).next(at.UTC())
		require.True(t, next.After(at))
		require.LessOrEqual(t, next.Sub(at), d)
		require.Zero(t, next.UnixNano()%int64(d))
		require.Equal(t, time.UTC, next.Location())
	})
}

func TestASpecAlwaysHasANextTick(t *testing.T) {
	s, _, _, err := parse("30 5 29 2 *", nil)
	require.NoError(t, err)
	at := time.Date(2092, 2, 29, 5, 30, 0, 0, time.UTC)
	require.Equal(t, at.AddDate(4, 0, 0), s.next(at))
	require.Equal(t, time.Date(2104, 2, 29, 5, 30, 0, 0, time.UTC), s.next(at.AddDate(4, 0, 0)), "2100 is no leap year")
}

// Years for which the time zone data have only a rule. The bounds of package time end there one day before a leap year does.
func TestTheLastDayOfALeapYearHasItsTicks(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Sydney"} {
		s, _, loc, err := parse("CRON_TZ="+zone+" 0 */6 * * *", nil)
		require.NoError(t, err)
		at := time.Date(2096, 12, 30, 0, 0, 0, 0, loc)
		for range 12 {
			next := s.next(at)
			require.Equal(t, 6*time.Hour, next.Sub(at))
			at = next
		}
		leap, _, _, err := parse("CRON_TZ="+zone+" 0 12 29 2 *", nil)
		require.NoError(t, err)
		require.Equal(t, time.Date(2104, 2, 29, 12, 0, 0, 0, loc), leap.next(at))
	}
}

// A zone whose clocks go from 2:00 to 3:00 on each 21st of March.
func TestNextOfATimeThatTheClocksSkipInEachYearIsFalse(t *testing.T) {
	types := "TZif2" + strings.Repeat("\x00", 15+4*4) + "\x00\x00\x00\x01\x00\x00\x00\x04" + strings.Repeat("\x00", 6) + "ABC\x00"
	loc, err := time.LoadLocationFromTZData("Test/Skips", []byte(types+types+"\nABC0DEF,J80/2,J300/3\n"))
	require.NoError(t, err)
	c := New(nil, "/s")
	c.At("skipped", "30 2 21 3 *", func(context.Context, Tick) error { return nil }, WithLocation(loc))
	c.At("shown", "30 3 21 3 *", func(context.Context, Tick) error { return nil }, WithLocation(loc))
	_, there := c.Next("skipped")
	require.False(t, there)
	at, there := c.Next("shown")
	require.True(t, there)
	require.Equal(t, "21 March 3:30", at.Format("2 January 3:04"))
}

func TestADescriptorIsTheSpecThatTheParserOfOthersHasForIt(t *testing.T) {
	for descriptor, spec := range descriptors {
		theirs, err := cron.ParseStandard(descriptor)
		require.NoError(t, err)
		ours, text, _, err := parse(descriptor, time.UTC)
		require.NoError(t, err)
		require.Equal(t, spec, text, "the record has the fields: a process that gives them has the same schedule")
		want := *theirs.(*cron.SpecSchedule)
		want.Location = time.UTC
		require.Equal(t, want, *ours.(crontab).SpecSchedule, descriptor)
	}
	_, _, _, err := parse("@reboot", nil)
	require.ErrorContains(t, err, `use one of @annually, @daily, @hourly, @midnight, @monthly, @weekly, @yearly or "@every 5m"`)
}

func TestEveryInASpecIsAlignedToTheEpochInEachZone(t *testing.T) {
	for _, spec := range []string{"@every 7m", "CRON_TZ=Asia/Kathmandu @every 7m", "TZ=Europe/Berlin  @every  420s"} {
		s, text, _, err := parse(spec, nil)
		require.NoError(t, err, spec)
		require.Equal(t, "@every 7m0s", text, spec)
		require.Equal(t, periodic(7*time.Minute), s, spec)
	}
	for _, spec := range []string{"@every", "@every 0s", "@every -1m", "@every 10us", "@every day"} {
		_, _, _, err := parse(spec, nil)
		require.Error(t, err, spec)
	}
}

func TestTheMomentOfATickIsWithinTheJitterAndBeforeTheNextTick(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	s, _, _, err := parse("30 2 * * *", berlin)
	require.NoError(t, err)
	of := func(name string) *shift {
		r := &runner{job: &job{name: name, schedule: s, zone: berlin, jitter: 20 * time.Hour}, cron: new(Cron)}
		r.agreed.Founded, r.terms.Base = 7, "/schedules/zkcron/"+name
		return &shift{runner: r}
	}
	a, b, again := of("a"), of("b"), of("a")
	at, equal, least, most := time.Date(2026, 1, 1, 0, 0, 0, 0, berlin), 0, time.Duration(1<<62), time.Duration(0)
	for range 1000 {
		at = s.next(at)
		due := a.due(at)
		require.False(t, due.Before(at))
		require.True(t, due.Before(s.next(at)), "where the clock shows 2:30 twice, the two ticks are an hour apart")
		require.Equal(t, due, again.due(at), "the process that takes over goes by the same moment")
		if due.Equal(b.due(at)) {
			equal++
		}
		least, most = min(least, due.Sub(at)), max(most, due.Sub(at))
	}
	require.Zero(t, equal, "jobs with one schedule begin at different moments")
	require.Less(t, least, time.Hour)
	require.Greater(t, most, 19*time.Hour)
	require.Less(t, most, 20*time.Hour)
}

// Some of these made the parser panic.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{"", " ", "TZ=", "CRON_TZ=UTC", "TZ= * * * * *", "CRON_TZ=UTC * * * * *", "*/5 1-3,7 ? jan-MAR sun", ", , , , ,",
		"-1 * * * *", "70/5 * * * *", "*/0 * * * *", "1-5-9 * * * *", "99999999999999999999 * * * *", "@every 1s", "0 0 31 2 *", "@daily", "TZ=UTC @every 5m", "@every -1s", "@every 1ns", "@reboot"} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		s, text, loc, err := parse(spec, nil)
		if err != nil {
			return
		}
		at := time.Date(2026, 11, 25, 23, 0, 0, 0, loc)
		next := s.next(at)
		require.True(t, next.After(at), "%q", spec)
		again, same, _, err := parse(text, loc)
		require.NoError(t, err)
		require.Equal(t, text, same)
		require.True(t, next.Equal(again.next(at)))
	})
}

// shows reports whether the clocks of the zone show a time of the spec. No spec of these tests has both a day of the
// month and a day of the week.
func shows(s crontab, t time.Time) bool {
	has := func(field uint64, n int) bool { return field&(1<<n) != 0 }
	return has(s.Minute, t.Minute()) && has(s.Hour, t.Hour()) && has(s.Dom, t.Day()) && has(s.Month, int(t.Month())) && has(s.Dow, int(t.Weekday()))
}

// In every zone, around every change of its clocks: each minute whose local time is one of the spec is a tick, and no other.
func TestEveryLocalTimeOfASpecIsATickInEveryZone(t *testing.T) {
	type change struct {
		clock         string
		before, after int
	}
	seen := map[change]bool{}
	for _, name := range zones(t) {
		loc, err := time.LoadLocation(name)
		require.NoError(t, err)
		for at := time.Date(2024, 1, 1, 0, 0, 0, 0, loc); ; {
			_, end := at.ZoneBounds()
			if end.IsZero() || end.Year() > 2027 {
				break
			}
			_, before := end.Add(-time.Second).Zone()
			_, after := end.Zone()
			at = end
			if c := (change{end.Format("15:04"), before, after}); seen[c] || before == after {
				continue
			} else {
				seen[c] = true
			}
			for _, spec := range []string{"0 0 * * *", "30 0 * * *", "30 1 * * *", "15,45 2 * * *", "0 3 * * *", "0 12 * * 0", "0 12 * * 5", "*/7 * * * *", "0 0 1,30,31 * *"} {
				parsed, _, _, err := parse(spec, loc)
				require.NoError(t, err)
				s := parsed.(crontab)
				last := end.Add(-26 * time.Hour)
				for minute := last.Add(time.Minute); minute.Before(end.Add(26 * time.Hour)); minute = minute.Add(time.Minute) {
					if shows(s, minute) {
						require.True(t, minute.Equal(s.next(last)), "%s in %s: the tick after %v is %v, want %v", spec, name, last, s.next(last), minute)
						last = minute
					}
				}
			}
		}
	}
	require.Greater(t, len(seen), 20)
}

// Days on which the clocks change at midnight, and by half an hour.
func TestADayWhoseClocksChangeAtMidnightHasItsTicks(t *testing.T) {
	for _, c := range []struct{ zone, spec, after, want string }{
		{"Africa/Cairo", "0 12 * * 5", "2025-04-24T13:00:00+02:00", "2025-04-25T12:00:00+03:00"},
		{"Africa/Cairo", "0 12 * * 5", "2026-04-23T13:00:00+02:00", "2026-04-24T12:00:00+03:00"},
		{"Asia/Beirut", "0 12 * * 0", "2025-03-29T13:00:00+02:00", "2025-03-30T12:00:00+03:00"},
		{"Asia/Beirut", "0 12 * * 0", "2026-03-28T13:00:00+02:00", "2026-03-29T12:00:00+03:00"},
		{"Australia/Lord_Howe", "30 1 * * *", "2025-04-06T01:30:00+11:00", "2025-04-06T01:30:00+10:30"},
		{"Australia/Lord_Howe", "30 1 * * *", "2025-10-05T01:30:00+10:30", "2025-10-06T01:30:00+11:00"},
		{"Australia/Lord_Howe", "0 9 * * *", "2025-10-04T09:00:00+10:30", "2025-10-05T09:00:00+11:00"},
	} {
		loc, err := time.LoadLocation(c.zone)
		require.NoError(t, err)
		s, _, _, err := parse(c.spec, loc)
		require.NoError(t, err)
		after, err := time.Parse(time.RFC3339, c.after)
		require.NoError(t, err)
		require.Equal(t, c.want, s.next(after).Format(time.RFC3339), "%s in %s", c.spec, c.zone)
	}
}

// Its only minute of a year is one that the clocks skip in that year.
func TestASpecWhoseTimeTheClocksSkipInAYearFiresInTheNext(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	s, _, _, err := parse("30 2 31 3 *", loc)
	require.NoError(t, err)
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, loc)
	require.Equal(t, time.Date(2025, 3, 31, 2, 30, 0, 0, loc), s.next(at), "the clocks change on the 31st in 2024")
}

func TestAZoneOfOneOffsetIsKnownByIt(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, "Europe/Berlin", zoneName(berlin))
	require.Equal(t, "UTC", zoneName(time.UTC))
	require.Equal(t, "UTC+01:30:00", zoneName(time.FixedZone("Europe/Berlin", 5400)))
	require.Equal(t, "UTC-05:00:00", zoneName(time.FixedZone("", -5*3600)))
}

// zones are the names of all zones, from the data that Go comes with.
func zones(t *testing.T) (names []string) {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	r, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(out)), "lib", "time", "zoneinfo.zip"))
	require.NoError(t, err)
	defer r.Close()
	for _, f := range r.File {
		if !strings.HasSuffix(f.Name, "/") {
			names = append(names, f.Name)
		}
	}
	return names
}

// The leader's clock was a year ahead when the job was made, and has been set right since.
func TestAJobThatWasMadeUnderAWrongClockHasItsTicks(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 30, 0, time.UTC)
	s, _, _, err := parse("* * * * *", nil)
	require.NoError(t, err)
	h := &shift{runner: &runner{job: &job{schedule: s, zone: time.UTC}}}
	h.from = now.AddDate(1, 0, 0)
	tick := func(now time.Time) time.Time {
		next, due := h.next(now)
		require.Equal(t, next.Scheduled, due)
		return due
	}
	due := tick(now)
	require.Equal(t, now.Add(30*time.Second), due)
	require.Equal(t, due, tick(due), "it is due when its time has come")
	h.from = now.Add(-90 * time.Second)
	require.Equal(t, now.Add(-30*time.Second), tick(now))
}
