package zkcron

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAPeriodIsAlignedToTheEpoch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(400*24*time.Hour)).Draw(t, "d"))
		at := time.Unix(0, rapid.Int64Range(-1e18, 4e18).Draw(t, "at"))
		next := periodic(d).next(at)
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

// Some of these made the parser panic.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{"", " ", "TZ=", "CRON_TZ=UTC", "TZ= * * * * *", "CRON_TZ=UTC * * * * *", "*/5 1-3,7 ? jan-MAR sun", ", , , , ,",
		"-1 * * * *", "70/5 * * * *", "*/0 * * * *", "1-5-9 * * * *", "99999999999999999999 * * * *", "@every 1s", "0 0 31 2 *"} {
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
