package interop

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shared are the recipes of Curator's whose paths may be shared, with the test that does it.
var shared = map[string]string{
	"InterProcessMutex":         "TestBothHalvesShareTheirPathsWhileProcessesAreKilled",
	"InterProcessReadWriteLock": "TestBothHalvesShareTheirPathsWhileProcessesAreKilled",
	"InterProcessMultiLock":     "TestBothHalvesShareTheirPathsWhileProcessesAreKilled",
	"LeaderSelector":            "TestBothHalvesShareTheirPathsWhileProcessesAreKilled",
	"CuratorCache":              "TestBothHalvesSeeTheSameNodesWhileProcessesAreKilled",
	"TreeCache":                 "TestBothHalvesSeeTheSameNodesWhileProcessesAreKilled",
	"NodeCache":                 "TestBothHalvesSeeTheSameNodesWhileProcessesAreKilled",
	"PathChildrenCache":         "TestBothHalvesSeeTheSameNodesWhileProcessesAreKilled",
	"PersistentWatcher":         "TestBothHalvesSeeTheSameNodesWhileProcessesAreKilled",
	"PersistentNode":            "TestANodeIsKeptByOneHalfAfterTheOther",
}

// untested are those without a test, with the reason.
var untested = map[string]string{
	"InterProcessSemaphore":   "it has the nodes of InterProcessMutex, which are tested",
	"PersistentEphemeralNode": "Curator's PersistentNode under its old name",
	"ServiceDiscovery":        "Debian has no curator-x-discovery",
}

// Every name in Curator's table of docs/porting/curator.md whose column "same path" says something has a test.
func TestEachRowOfCuratorsTableHasATest(t *testing.T) {
	text, err := os.ReadFile("../docs/porting/curator.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), "## From Curator")
	require.True(t, ok)
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.SplitSeq(table, "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		yes, no := strings.HasPrefix(cells[2], "yes"), strings.HasPrefix(cells[2], "no")
		for _, name := range regexp.MustCompile("`(\\w+)").FindAllStringSubmatch(cells[0], -1) {
			if _, left := untested[name[1]]; left {
				continue
			}
			if yes {
				require.Contains(t, shared, name[1])
				rows++
			}
			if no {
				require.Contains(t, strangers, name[1])
				rows++
			}
		}
	}
	require.Greater(t, rows, 25, "the table is not found")
}
