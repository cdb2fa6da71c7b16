//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rolling update of three machines with two jobs, one of which gets another schedule. A new process must be ready before an old one is
// stopped, as with maxUnavailable 0: it is ready when it queues for the job that has not changed. One of the old processes is killed.
func TestAcceptance201ARollingUpdateWithAnotherScheduleFinishes(t *testing.T) {
	for name, revision := range map[string][]string{"without a revision": nil, "with a revision": {"--revision", "1"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			log, lines := cronLog(t)
			kept, keptLines := cronLog(t)
			const note = `echo "$WHO/$MENAGERIE_SCHEDULED/$MENAGERIE_TOKEN" >>"$0"`
			type machine struct{ changed, same *program }
			begin := func(who, every string, more ...string) machine {
				job := func(path, log string, args ...string) *program {
					args = append([]string{"cron", path, "--missed", "all", "--timeout", "3s", "--servers", s.addr}, args...)
					return start(t, append(args, "--", "sh", "-c", "WHO="+who+"; "+note, log)...)
				}
				return machine{job("/roll/a", log, append(more, "--every", every)...), job("/roll/b", kept, "--every", "1s")}
			}
			const queue = "/roll/b/zkcron/job/queue"
			var old, new []machine
			for i := range 3 {
				old = append(old, begin("old", "1s"))
				s.queued(t, "/roll/a/zkcron/job/queue", i+1)
				s.queued(t, queue, i+1)
			}
			for i := range 3 {
				new = append(new, begin("new", "500ms", revision...))
				s.queued(t, queue, 4) // it is ready
				for _, p := range []*program{old[i].changed, old[i].same} {
					if i == 1 {
						require.NoError(t, p.cmd.Process.Kill())
						continue
					}
					p.signal(syscall.SIGTERM)
					require.Equal(t, 143, p.wait(), p.stderr.String())
				}
				s.queued(t, queue, 3) // of the one that was killed the node ends with its session
				time.Sleep(1200 * time.Millisecond)
			}
			ran := func(who string, n int) func() bool {
				return func() bool { return strings.Count(strings.Join(lines(), "\n"), who+"/") >= n }
			}
			require.Eventually(t, ran("new", 4), patience, pause)
			for _, m := range new {
				for _, p := range []*program{m.changed, m.same} {
					require.NoError(t, p.cmd.Process.Signal(syscall.Signal(0)), "it runs: %s", p.stderr.String())
					p.signal(syscall.SIGTERM)
				}
			}
			for _, m := range new {
				require.Equal(t, 143, m.changed.wait())
				require.Equal(t, 143, m.same.wait())
			}
			// The old schedule first, then the new one; each tick once, in order, but for one under way in the process that was killed.
			once(t, lines(), map[string]time.Duration{"old": time.Second, "new": 500 * time.Millisecond})
			once(t, keptLines(), map[string]time.Duration{"old": time.Second, "new": time.Second})
		})
	}
}

// once checks that the ticks in a log come in order, each once but for one that was killed, and none of the time of one schedule is left out.
func once(t *testing.T, lines []string, every map[string]time.Duration) {
	t.Helper()
	var last time.Time
	var before, token string
	twice := 0
	for _, line := range lines {
		part := strings.Split(line, "/")
		require.Len(t, part, 3, line)
		at, err := time.Parse(time.RFC3339Nano, part[1])
		require.NoError(t, err)
		require.Greater(t, part[2], token, "tokens grow: %v", lines)
		apart := at.Sub(last)
		switch {
		case apart == 0:
			twice++
		case before == part[0], every["old"] == every["new"] && before != "":
			require.Equal(t, every[part[0]], apart, "%v", lines)
		case before != "":
			require.Equal(t, "old", before, "the old schedule does not come back: %v", lines)
			require.Positive(t, apart)
		}
		last, before, token = at, part[0], part[2]
	}
	require.LessOrEqual(t, twice, 1, "%v", lines)
}
