//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
)

func TestRealServersSayHowLongAFrozenClientIsSilent(t *testing.T) {
	t.Parallel()
	e := ensemble.ForTest(t, 3)
	p := start(t, "lock", "/frozen", "--servers", e.Connect(), "--timeout", "10s", "--", "sh", "-c", "echo holding; exec sleep 600")
	p.prints("holding")
	session, err := strconv.ParseUint(contenders(t, e.Connect(), "/frozen")[0].Session[2:], 16, 64)
	require.NoError(t, err)
	status := func() (r servers.Report) {
		p := run(t, "status", "--json", "--servers", e.Connect())
		p.succeeded()
		require.NoError(t, json.Unmarshal([]byte(p.stdout.String()), &r))
		return r
	}

	r := status()
	require.Equal(t, servers.Ensemble{Quorum: true, Voters: 3, Serving: 3, TimeoutMin: 1000, TimeoutMax: 60_000, Containers: true, TTL: true, PersistentWatches: true}, r.Ensemble)
	modes := map[string]int{}
	for _, s := range r.Servers {
		modes[s.Mode]++
		require.Equal(t, []string{"srvr", "cons", "dump", "conf"}, s.Words)
		require.Regexp(t, `^3\.\d+\.\d+$`, s.Version)
		require.Positive(t, s.LatencyMS)
	}
	require.Equal(t, map[string]int{"leader": 1, "follower": 2}, modes)
	require.True(t, r.Tells)
	text, _ := r.Dead(int64(session))
	require.Empty(t, text)
	c := r.Clients[int64(session)]
	require.True(t, *c.Exists)
	require.EqualValues(t, 10_000, c.TimeoutMS)

	p.signal(syscall.SIGSTOP)
	var last string
	require.Eventually(t, func() bool {
		r := status()
		text, probably := r.Dead(int64(session))
		if probably {
			last = text
			require.True(t, slices.ContainsFunc(r.Findings, func(f servers.Finding) bool {
				return f.Text == "the client with session "+r.Clients[int64(session)].Session+" is probably dead: "+text
			}), "%v", r.Findings)
		}
		return probably
	}, patience, pause)
	require.Regexp(t, `^last heard ([6-9] s ago: free in at most [1-4]|\d+ s ago: free in at most 0) s$`, last)
	require.Eventually(t, func() bool { // and its session ends
		_, exists := status().Clients[int64(session)]
		return !exists
	}, patience, pause)
}
