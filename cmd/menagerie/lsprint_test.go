//go:build unix

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestNothingIsCutInAPipe(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	z := s.session(t)
	deep := "/" + strings.Repeat("directory/", 12) + "lock"
	_, err := zksync.NewMutex(z, deep, zksync.WithName(strings.Repeat("n", 60))).LockContext(t.Context())
	require.NoError(t, err)
	_, err = zkelection.New(z, "/e", zkelection.Candidate{ID: strings.Repeat("i", 90)}).Campaign(t.Context())
	require.NoError(t, err)
	_, err = zksemaphore.NewWeighted(z, "/sem", 1<<40).AcquireLease(t.Context(), 1<<40)
	require.NoError(t, err)
	require.Contains(t, s.ls(t, deep), strings.Repeat("n", 60))
	require.Contains(t, s.ls(t, "/e"), strings.Repeat("i", 90))
	require.Contains(t, s.ls(t, "-r"), deep+"  ")
	require.Contains(t, s.ls(t, "-l", deep), strings.Repeat("n", 60))
	require.Contains(t, s.ls(t, "-l", deep), deep+"/_c_")
	require.Contains(t, s.ls(t, "-l", "-r"), deep+": lock, held by")
}

// One long cell must not make the others useless.
func TestALongPathLeavesRoomForTheStateAndALongIDForTheOwner(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	state := "held by web-3 pid 4711 for 12s"
	writeView(&w, &tree.View{Target: &tree.Object{Path: "/", Kind: "directory", State: "directory"}, Below: []*tree.Object{
		{Path: "/short", Kind: "lock", Detail: state},
		{Path: "/" + strings.Repeat("directory/", 12) + "the-lock", Kind: "lock", Detail: state},
		{Path: "/long", Kind: "lock", Detail: state + strings.Repeat(" and so on", 9)},
	}}, lsOptions{}, time.Now())
	lines := strings.Split(w.String(), "\n")
	require.Regexp(t, `^/short +lock  `+state+`$`, lines[1])
	require.Regexp(t, `^/directory/.*\.\.\..*/directory/the-lock  lock  `+state+`$`, lines[2])
	require.Equal(t, 40, strings.Index(lines[2], "  lock"), "no shorter than that")
	require.Len(t, lines[3], maxColumns)

	w.Reset()
	writeEntries(&w, &tree.Object{Entries: []tree.Row{{Kind: "lock", State: "held", ID: strings.Repeat("i", 90), Owner: tree.Owner{Host: "web-3", PID: 4711, Name: "invoices"}}}}, lsOptions{}, time.Now())
	require.Contains(t, w.String(), "iii...  invoices@web-3:4711  ")
}

func TestNothingThatIsPrintedTurnsTheTextAround(t *testing.T) {
	var w bytes.Buffer
	writeLine(&w, true, "/a\u202eb\x1b[2J: lock")
	writeTable(&w, [][]string{{"PATH", "KIND"}, {"/a\u202eb\u200f", "lock"}}, maxColumns)
	require.Equal(t, "/a?b?[2J: lock\nPATH   KIND\n/a?b?  lock\n", w.String())
}
