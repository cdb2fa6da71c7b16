package servers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionsWithFaultsAreFindings(t *testing.T) {
	for version, want := range map[string][]string{
		"3.9.3": {"4925"}, "3.9.3-SNAPSHOT": {"4925"}, "3.9.4": nil, "3.9.2": nil, "3.9.1": {"4785"}, "3.9.0": {"4785"}, "3.8.5": nil, "3.8.6": nil,
		"3.8.4": {"4785"}, "3.7.2": {"4785"}, "3.6.0": {"4785"}, "3.5.10": {"4785", "recursive"}, "3.4.14": {"4785", "recursive", "containers"},
		"3.10.0": nil, "4.0.0": nil, "3.8.0-menagerie": nil, "nonsense": nil, "": nil, "3": nil, "3.x.1": nil,
	} {
		r := &Report{Tells: true, Ensemble: Ensemble{Quorum: true, Serving: 1}, Servers: []Server{{Addr: "zk:1", Serves: true, Reachable: true, Version: version, Words: []string{"srvr"}}}}
		r.find(0)
		require.Len(t, r.Findings, len(want), version)
		for i, fragment := range want {
			require.Contains(t, r.Findings[i].Text, fragment)
			require.Contains(t, r.Findings[i].Text, version+" (zk:1)")
			require.True(t, strings.HasPrefix(r.Findings[i].Fix, "go to 3."))
		}
	}
	r := &Report{Tells: true, Ensemble: Ensemble{Quorum: true}, Servers: []Server{{Version: "3.8.6", Serves: true, Words: []string{"srvr"}}, {Version: "3.9.4", Serves: true, Words: []string{"srvr"}}}}
	r.find(0)
	require.Equal(t, []string{"note: the servers have several versions: 3.8.6, 3.9.4"}, texts(r))
}
