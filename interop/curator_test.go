package interop

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// jars is the class path of Debian's packages.
const jars = "/usr/share/java/*"

// startCurator compiles and starts the program in java.
func startCurator(t *testing.T) *program {
	t.Helper()
	sources, err := filepath.Glob("java/*.java")
	require.NoError(t, err)
	classes := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "javac",
		append([]string{"-cp", jars, "-nowarn", "-d", classes}, sources...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return startProgram(t, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", classes+":"+jars, "Recipes")
}

func TestCuratorWorks(t *testing.T) {
	t.Parallel()
	peers(t)
	play(t, "curator", startCurator(t), curatorScenarios)
}

// The results are those of the real server. Nodes that are left were made to stay; Curator's own parents are
// containers.
var curatorScenarios = map[string]expected{
	"acl":                      {result: "digest ann 31 {acl=NOAUTH, create=NOAUTH, exists=OK, friend=OK, get=NOAUTH, list=NOAUTH, opened=OK, set=NOAUTH}"},
	"atomic-long":              {result: "30 numbers, wrong false, right true, now -5", left: "number"},
	"background":               {result: "CREATE 0, GET_DATA x, CHILDREN [a], DELETE -101, SYNC 0", left: "a a/b"},
	"barrier":                  {result: "open true, early false, through 3"},
	"cached-long":              {result: "last 7, reserved 10", left: "number"},
	"container":                {result: "gone"},
	"curator-cache":            {result: "created here=, created here/old=0, initialized, created here/a=1, changed here/a=2, created here/b=3, deleted here/a=2, changed here/old=4, created here/x=, created here/x/y=, created here/x/y/z=deep", left: "here here/b here/old here/x here/x/y here/x/y/z"},
	"cut-cache":                {result: "SUSPENDED RECONNECTED, 3 nodes", left: "a b"},
	"cut-holder":               {result: "SUSPENDED RECONNECTED, early false, taken true"},
	"cut-leader":               {result: "leader, not leader, leader"},
	"cut-watches":              {result: "NodeChildrenChanged /, NodeCreated /b, NodeDataChanged /a, NodeDataChanged /later", left: "a b below below/child later"},
	"double-barrier":           {result: "early 0, left 4, alone false", left: "barrier lonely"},
	"downgrade":                {result: "read before false, read after true, write false"},
	"expired-cache":            {result: "2 nodes", left: "b"},
	"expired-holder":           {result: "taken true, SUSPENDED LOST RECONNECTED"},
	"expired-leader":           {result: "led true, two false, back true"},
	"expired-nodes":            {result: "back"},
	"expired-waiter":           {result: "early false, taken true"},
	"failed-transaction":       {result: "NODEEXISTS, 0 -110 -2, children 0"},
	"group-member":             {result: "a c", spoil: lose(zktest.On(zktest.Create, "/curator-group-member/group/*").Nth(2))},
	"growing-semaphore":        {result: "early false, granted true", left: "limit"},
	"idempotence":              {result: "version 1, BADVERSION", left: "a"},
	"leader-latch":             {result: "a1 b1 c1"},
	"leader-selector":          {result: "candidates 3, leaders at a time 1"},
	"multi-lock":               {result: "early false, released true, all true, busy true"},
	"mutex":                    {result: "48 visits by 1, busy true, participants 1, free true", spoil: lose(zktest.On(zktest.Create, "/curator-mutex/lock/_c_*").Nth(9), zktest.On(zktest.Delete, "/curator-mutex/lock/_c_*").Nth(11))},
	"node-cache":               {result: "here/a=1, here/a=2, none", left: "here"},
	"one-shot-watches":         {result: "NodeCreated /a, NodeDataChanged /a, NodeChildrenChanged /"},
	"path-children-cache":      {result: "CHILD_ADDED here/old=0, INITIALIZED, CHILD_ADDED here/a=1, CHILD_UPDATED here/a=2, CHILD_ADDED here/b=3, CHILD_REMOVED here/a=2, CHILD_UPDATED here/old=4", left: "here here/b here/old"},
	"persistent-node":          {result: "created true, gone true"},
	"persistent-ttl-node":      {result: "created true, data a"},
	"persistent-watch":         {result: "NodeChildrenChanged /, NodeDataChanged /, NodeDataChanged /, NodeChildrenChanged /, NodeDeleted /"},
	"persistent-watch-removal": {result: "NodeCreated /a, PersistentWatchRemoved /"},
	"priority-queue":           {result: "now soon late", left: "queue"},
	"promoted-long":            {result: "now 30", left: "number"},
	"protection":               {result: "1 node, mine true, protected true", spoil: lose(zktest.On(zktest.Create, "/curator-protection/_c_*"))},
	"questions":                {result: "/curator-questions/a/e1 /curator-questions/e2, /curator-questions/a/e1, 3 below, digest ann, ip 127.0.0.1, config 0", left: "a"},
	"queue":                    {result: "item0 item1 item2 item3 item4 item5 item6 item7 item8 item9", left: "locks queue"},
	"read-write":               {result: "16 visits by 1, excluded true, alone true"},
	"recursive-watch":          {result: "NodeCreated /a, NodeCreated /a/b, NodeDataChanged /a/b, NodeDataChanged /, NodeDataChanged /, NodeDeleted /a/b, NodeDeleted /a, NodeDeleted /"},
	"revoke":                   {result: "asked, taken true"},
	"semaphore":                {result: "crowded false, third false, nodes 2, data true", spoil: lose(zktest.On(zktest.Create, "/curator-semaphore/semaphore/leases/*").Nth(5))},
	"semaphore-mutex":          {result: "24 visits by 1, again false, next true"},
	"shared-count":             {result: "seed 10, heard 11 12, set true, stale false", left: "count"},
	"simple-queue":             {result: "1223null", left: "queue", spoil: lose(zktest.On(zktest.GetChildren, "/curator-simple-queue/queue").Nth(3))},
	"single-node-cache":        {result: "created here=0, initialized, changed here=1, deleted here=1, created here=2", left: "here"},
	"transaction":              {result: "CREATE /a, SET_DATA, CHECK, CREATE /s-0000000001, CREATE, CREATE, DELETE, version 1", left: "c s-0000000001 t"},
	"tree-cache":               {result: "NODE_ADDED here=, NODE_ADDED here/old=0, INITIALIZED, NODE_ADDED here/a=1, NODE_UPDATED here/a=2, NODE_ADDED here/b=3, NODE_REMOVED here/a=2, NODE_UPDATED here/old=4", left: "here here/b here/old"},
	"ttl":                      {result: "0 then 0, left [long]", left: "long"},
	"watch-removal":            {result: "DataWatchRemoved /, NOWATCHER, NodeDataChanged /, ChildWatchRemoved /, NOWATCHER", left: "unheard"},
	"restart":                  {result: "early false, lock true, barrier true, same session true", left: "count"},
}
