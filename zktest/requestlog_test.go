package zktest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLogKeepsTheLastHundredThousandRequests(t *testing.T) {
	var l requestLog
	require.Empty(t, l.all())
	const n = 345_678
	for i := range int32(n) {
		l.add(Request{Xid: i, Paths: []string{"/n"}})
		if i%10_000 == 0 {
			all := l.all()
			require.GreaterOrEqual(t, len(all), min(int(i)+1, maxLog))
			require.LessOrEqual(t, len(all), maxLog+maxPiece)
			require.Equal(t, i, all[len(all)-1].Xid)
			require.Equal(t, i-int32(len(all))+1, all[0].Xid, "there is no gap")
			require.Equal(t, int(i)+1, all[len(all)-1].Number, "it counts on when the log forgets")
		}
	}
	next := int32(n)
	for r := range l.newest {
		next--
		require.Equal(t, next, r.Xid)
	}
	require.Equal(t, n-l.n, int(next))
}

func TestTheLogForgetsEarlierWhatHasLongPaths(t *testing.T) {
	var l requestLog
	long := strings.Repeat("x", 1<<20)
	for i := range int32(1000) {
		l.add(Request{Xid: i, Paths: []string{long}})
		require.LessOrEqual(t, l.text, maxLogText)
	}
	require.Equal(t, maxLogText/(1<<20)-1, l.n)
	require.Equal(t, int32(999), l.all()[l.n-1].Xid)
	for i := range int32(maxLog) {
		l.add(Request{Xid: i, Paths: []string{"/n"}})
	}
	require.Equal(t, maxLog, l.n)
	require.Equal(t, maxLog*18, l.text)
}
