package session

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/logs"
)

func mustInherit(t *testing.T, path string) *sessionJournal {
	t.Helper()
	e, err := openJournal(path, []string{"zk1:2181", "zk2:2181"}, logs.New(nil))
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.file.close() }) // most tests have closed it
	return e
}

func ids(e *sessionJournal) (all []int64) {
	for _, c := range e.inherited() {
		all = append(all, c.ID)
	}
	return all
}

func TestOnlySessionsThatHaveNotEndedAreHandedDown(t *testing.T) {
	path := sessionPath(t)
	e := mustInherit(t, path)
	require.Empty(t, ids(e))
	for id := int64(1); id <= 4; id++ {
		e.add(id, []byte{byte(id)})
	}
	e.remove(2)
	e.remove(4)
	e.remove(77)
	require.NoError(t, e.close())
	e = mustInherit(t, path)
	require.Equal(t, []int64{1, 3}, ids(e))
	require.Equal(t, []byte{3}, e.inherited()[1].Passwd)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(content), `"servers":"zk1:2181,zk2:2181"`)
	e.remove(3)
	e.remove(1)
	require.NoError(t, e.close())
	require.Empty(t, ids(mustInherit(t, path)))
}

func TestAProcessWithoutASessionOfItsOwnLeavesTheFileAsItWas(t *testing.T) {
	path := sessionPath(t)
	for _, content := range []string{`{"session":"0x1","password":"cA==","servers":"old"}` + "\n", "of somebody else"} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, mustInherit(t, path).close())
		left, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(left))
	}
}

func TestOfTooManyDeadProcessesTheOldestIsForgotten(t *testing.T) {
	path := sessionPath(t)
	for id := int64(1); id <= 3*maxJournal; id++ { // each dies before it can end the one before
		e := mustInherit(t, path)
		e.add(id, []byte("p"))
		require.NoError(t, e.file.close())
	}
	e := mustInherit(t, path)
	require.Len(t, ids(e), maxJournal)
	require.Equal(t, int64(2*maxJournal+1), ids(e)[0])
	require.Equal(t, int64(3*maxJournal), ids(e)[maxJournal-1])
}

func TestAReconnectDoesNotWriteTheFile(t *testing.T) {
	path := sessionPath(t)
	e := mustInherit(t, path)
	e.add(1, []byte("p"))
	require.NoError(t, os.Truncate(path, 0))
	e.add(1, []byte("p"))
	left, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAFileThatCannotBeWrittenIsLogged(t *testing.T) {
	var log bytes.Buffer
	e := mustInherit(t, sessionPath(t))
	e.log = logs.New(slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, e.file.close())
	e.add(1, []byte("p"))
	require.Contains(t, log.String(), "level=ERROR msg=\"cannot keep the session for a successor")
}
