package logs_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/logs"
)

func TestOneCauseIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := logs.New(slog.New(slog.NewTextHandler(&b, nil)))
		lines := func() int { return strings.Count(b.String(), "\n") }
		throttled := func() { l.Once("refused", "throttled").Warn("refused") }
		require.Zero(t, l.Due("refused", "throttled"))
		throttled()
		throttled()
		require.Equal(t, 1, lines())
		require.Equal(t, time.Now().Add(time.Minute), l.Due("refused", "throttled"))
		l.Once("refused", "quota").Warn("refused")
		l.Once("panicked", "throttled").Error("panicked")
		require.Equal(t, 3, lines(), "other causes")
		time.Sleep(time.Minute - 1)
		throttled()
		require.Equal(t, 3, lines())
		time.Sleep(time.Nanosecond)
		throttled()
		throttled()
		require.Equal(t, 4, lines())
	})
}

// A cause is forgotten when it is older than that, and not before, however many there are.
func TestThousandsOfCausesAreEachLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := logs.New(slog.New(slog.NewTextHandler(&b, nil)))
		for range 3 {
			b.Reset()
			for range 2 {
				for i := range 5000 {
					l.Once("lost", fmt.Sprint(i)).Warn("lost")
				}
				time.Sleep(30 * time.Second)
			}
			require.Equal(t, 5000, strings.Count(b.String(), "\n"))
		}
	})
}

func TestSilenceRemembersNothing(t *testing.T) {
	for _, l := range []*slog.Logger{nil, slog.New(slog.DiscardHandler)} {
		l := logs.New(l)
		l.Once("lost", "").Warn("lost")
		require.Zero(t, l.Due("lost", ""))
		require.Zero(t, testing.AllocsPerRun(100, func() { l.Once("lost", "") }))
	}
}

func TestALineSaysWhereItComesFrom(t *testing.T) {
	var b bytes.Buffer
	l := logs.New(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{AddSource: true, Level: slog.LevelDebug})))
	l.Debug("tried", "server", "zk1")
	l.Once("lost", "").Warn("lost")
	for line := range strings.Lines(b.String()) {
		require.Contains(t, line, "logs_test.go:")
	}
	require.Regexp(t, `level=DEBUG source=\S+ msg=tried server=zk1\n`, b.String())
}
