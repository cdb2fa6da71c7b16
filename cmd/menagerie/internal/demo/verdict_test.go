package demo

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// story turns lines such as "enter 1 5" (event, process, zxid of the token) into a journal.
func story(t *testing.T, lines ...string) []entry {
	t.Helper()
	var entries []entry
	for _, line := range lines {
		f := strings.Fields(line)
		for len(f) < 3 {
			f = append(f, "0")
		}
		e, err := parseEntry(f[0] + " " + f[1] + " " + f[1] + " " + strings.Repeat("0", 16-len(f[2])) + f[2] + "-00000000")
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

func TestHoldsOneAfterTheOtherAreRight(t *testing.T) {
	h := judge(story(t, "enter 1 5", "write 1 5", "leave 1 5", "enter 2 7", "write 2 7", "leave 2 7", "enter 1 9", "leave 1 9"))
	require.Equal(t, 3, h.holds)
	require.Zero(t, h.overlaps)
	require.True(t, h.ordered)
}

func TestHoldsThatOverlapAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		lines    []string
		overlaps int
	}{
		"two at once":               {[]string{"enter 1 5", "enter 2 7", "hold 1 5", "leave 1 5", "hold 2 7", "leave 2 7"}, 1},
		"one inside the other":      {[]string{"enter 1 5", "enter 2 7", "hold 2 7", "leave 2 7", "hold 1 5", "leave 1 5"}, 1},
		"three at once":             {[]string{"enter 1 5", "enter 2 7", "enter 3 9", "hold 1 5", "leave 1 5", "hold 2 7", "leave 2 7", "hold 3 9", "leave 3 9"}, 3},
		"asleep before it left":     {[]string{"enter 1 5", "hold 1 5", "enter 2 7", "hold 2 7", "leave 2 7", "leave 1 5"}, 0},
		"asleep, and held again":    {[]string{"enter 1 5", "hold 1 5", "enter 2 7", "hold 1 5", "leave 2 7", "leave 1 5"}, 1},
		"never left":                {[]string{"enter 1 5", "hold 1 5", "enter 2 7", "hold 2 7", "hold 1 5", "hold 1 5"}, 1},
		"killed when it held":       {[]string{"enter 1 5", "enter 2 7", "hold 1 5", "hold 1 5", "leave 2 7", "kill 1"}, 1},
		"its death noted late":      {[]string{"enter 1 5", "write 1 5", "hold 1 5", "enter 2 7", "leave 2 7", "kill 1"}, 0},
		"a grant noted too late":    {[]string{"enter 2 7", "hold 2 7", "enter 1 5", "lost 1 5", "hold 2 7", "leave 2 7"}, 0},
		"killed in time":            {[]string{"enter 1 5", "hold 1 5", "kill 1", "enter 2 7", "leave 2 7"}, 0},
		"killed outside a hold":     {[]string{"enter 1 5", "leave 1 5", "kill 1", "enter 2 7", "leave 2 7"}, 0},
		"lost and idle since":       {[]string{"enter 1 5", "enter 2 7", "hold 1 5", "lost 1 5", "leave 2 7"}, 0},
		"lost, had written before":  {[]string{"enter 1 5", "write 1 5", "enter 2 7", "leave 2 7", "lost 1 5"}, 0},
		"lost and written after":    {[]string{"enter 1 5", "enter 2 7", "write 1 5", "lost 1 5", "leave 2 7"}, 1},
		"died and idle since":       {[]string{"enter 1 5", "enter 2 7", "die 1", "leave 2 7"}, 0},
		"died and written after":    {[]string{"enter 1 5", "enter 2 7", "write 1 5", "die 1", "leave 2 7"}, 1},
		"a successor of a lost one": {[]string{"enter 1 5", "lost 1 5", "enter 1 7", "enter 2 9", "hold 1 7", "leave 1 7", "hold 2 9", "leave 2 9"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.overlaps, judge(story(t, c.lines...)).overlaps)
		})
	}
}

func TestTokensMustGrowWithEveryGrant(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		grew  bool
	}{
		"grew":                    {[]string{"enter 1 5", "leave 1 5", "enter 2 6", "leave 2 6"}, true},
		"same":                    {[]string{"enter 1 5", "leave 1 5", "enter 2 5", "leave 2 5"}, false},
		"shrank":                  {[]string{"enter 1 5", "leave 1 5", "enter 2 4", "leave 2 4"}, false},
		"shrank from one process": {[]string{"enter 1 9", "leave 1 9", "enter 1 5", "leave 1 5"}, false},
		"noted too late":          {[]string{"enter 2 7", "hold 2 7", "enter 1 5", "lost 1 5", "leave 2 7"}, true},
		"nothing granted":         {nil, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.grew, judge(story(t, c.lines...)).ordered) })
	}
}

func TestEachProblemIsNamed(t *testing.T) {
	right := Result{Expected: 400, Counter: 400, TokensMonotonic: true}
	require.Empty(t, right.Problem())
	wrong := Result{Expected: 400, Counter: 399, Overlaps: 2}
	require.Equal(t, "the counter is 399, not 400, 2 holds overlapped, a token did not grow", wrong.Problem())
}

func TestAJournalIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(path)
	require.NoError(t, err)
	defer j.close()
	want := []entry{
		{entered, 3, 4711, zksync.Token{Zxid: 1 << 40, Seq: 7}},
		{killed, 3, 4711, zksync.Token{}},
	}
	for _, e := range want {
		require.NoError(t, j.append(e))
	}
	got, err := loadJournal(path)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestAJournalWithRubbishIsAnError(t *testing.T) {
	for _, text := range []string{"enter 1 2", "enter x 2 0000000000000005-00000000", "enter 1 y 0000000000000005-00000000", "enter 1 2 5"} {
		_, err := readJournal(strings.NewReader(text + "\n"))
		require.ErrorContains(t, err, "journal line 1", text)
	}
}
