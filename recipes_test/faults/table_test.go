package faults_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inTable is the table of docs/guarantees/faults.md: how many kinds of blow fall on each use on each kind of server.
func inTable() string {
	var b strings.Builder
	b.WriteString("| use |")
	for _, k := range kindsOfServers() {
		fmt.Fprintf(&b, " %s |", k.name)
	}
	b.WriteString("\n|" + strings.Repeat("---|", 1+len(kindsOfServers())) + "\n")
	for _, e := range errands() {
		fmt.Fprintf(&b, "| `%s` |", e.name)
		for _, k := range kindsOfServers() {
			fmt.Fprintf(&b, " %d |", len(k.blows()))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The test of the errands fails where nothing strikes, so what it enumerates is what the table says.
func TestTheTableOfGuaranteesHasEveryUseAndEveryKindOfServer(t *testing.T) {
	doc, err := os.ReadFile("../../docs/guarantees/faults.md")
	require.NoError(t, err)
	require.Contains(t, string(doc), "\n"+inTable(), "docs/guarantees/faults.md, Which strikes run where")
	require.Greater(t, len(errands()), 36)
}

// Each use of an errand is named once, and for every type and option there is one.
func TestEveryTypeAndOptionHasAnErrand(t *testing.T) {
	names := map[string]bool{}
	for _, e := range errands() {
		require.False(t, names[e.name], e.name)
		names[e.name] = true
	}
	for _, name := range []string{"WithHandover", "WithLinger", "WithAsyncUnlock", "WithMaxHold", "WithLockDelay", "Revoked", "zksync.Mutex",
		"zksync.MultiLock", "zkrwmutex.RWMutex", "reentrant.Mutex", "zksemaphore.Weighted", "zkelection.Election", "zkcond.Cond", "zkonce.Once",
		"zkonce.Promise", "zkflight.Flight", "zkdurable.Mutex", "zkbarrier.Barrier", "zkbarrier.DoubleBarrier", "zklatch.Latch", "zklatch.Gate",
		"zkphaser.Phaser", "zkwaitgroup.WaitGroup", "zkatomic.Int64", "zkatomic.Value", "zkatomic.Sequence", "zkatomic.Slots", "zkmap.Map", "zkmap.Cache",
		"zkmap.Set", "zkwatch.Keep", "zkwatch.Data", "zkwatch.Children", "zkwatch.Tree", "zkqueue.Queue", "zkqueue.Queue.Work", "zkgroup.Group",
		"zkgroup.WithUntilDone", "zkcron.Cron", "zkcron.RunNow", "zkrate.Limiter"} {
		require.True(t, names[name], name)
	}
}
