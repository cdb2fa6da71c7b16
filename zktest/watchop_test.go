package zktest_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// pathAndKind is the body of addWatch, checkWatches and removeWatches.
func pathAndKind(path string, kind int32) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(path))), path...)
	return binary.BigEndian.AppendUint32(b, uint32(kind))
}

func TestPersistentWatchesAreSeenCountedAndIntercepted(t *testing.T) {
	t.Parallel()
	const addWatch, checkWatches, removeWatches = 106, 17, 18
	srv := zktest.Run(t, zktest.WithLeftovers())
	c := dialRaw(t, srv)
	require.Zero(t, c.request(addWatch, pathAndKind("/p", 0)...))
	require.Zero(t, c.request(addWatch, pathAndKind("/r", 1)...))
	require.Equal(t, 4, srv.Watches(), "each is a data and a child watch")
	require.Equal(t, 2, srv.WatchesOn("/r"))
	require.Equal(t, 4, srv.Sessions()[0].Watches)
	id := srv.Sessions()[0].ID
	require.Equal(t, []zktest.Watch{
		{Path: "/p", Session: id, Kind: zktest.PersistentWatch}, {Path: "/r", Session: id, Kind: zktest.RecursiveWatch},
	}, srv.WatchList())

	require.Zero(t, c.request(checkWatches, pathAndKind("/r", 3)...))
	require.Zero(t, c.request(removeWatches, pathAndKind("/p", 3)...))
	require.Equal(t, []string{"/r"}, srv.WatchedPaths())
	for op, n := range map[zktest.Op]int{zktest.AddWatch: 2, zktest.CheckWatches: 1, zktest.RemoveWatches: 1} {
		require.Equal(t, n, srv.RequestsBy(op), op)
	}
	require.Equal(t, 4, srv.Requests(), "a caller asks for them")

	srv.Intercept(zktest.On(zktest.AddWatch, "/r/**").Error(zktest.CodeNoAuth))
	require.EqualValues(t, -102, c.request(addWatch, pathAndKind("/r/x", 0)...))
	require.Zero(t, c.request(addWatch, pathAndKind("/s", 0)...))
	require.Equal(t, []string{"/r", "/s"}, srv.WatchedPaths())
	require.Contains(t, srv.Log()[1].String(), " addWatch /p ")
}

func TestWordsThatAreNotAllowedAreRefused(t *testing.T) {
	t.Parallel()
	srv := zktest.Run(t, zktest.WithFourLetterWords("srvr"))
	require.Contains(t, word(t, srv, "srvr"), "Mode: standalone")
	require.Equal(t, "mntr is not executed because it is not in the whitelist.\n", word(t, srv, "mntr"))
}
