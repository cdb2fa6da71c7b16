package interop

import (
	"testing"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestKazooWorks(t *testing.T) {
	t.Parallel()
	peers(t)
	play(t, "kazoo", startProgram(t, "/usr/bin/python3", "-B", "python/recipes.py"), kazooScenarios)
}

// The results are those of the real server. kazoo never removes the parents that it makes.
var kazooScenarios = map[string]expected{
	"acl":                   {result: "['NoAuthError', 'NoAuthError', 'NoAuthError', 'NoAuthError', 'OK'], digest True ['ALL'], then OK"},
	"administration":        {result: "imok, 3.8.0"},
	"barrier":               {result: "free True, early False, removed True False, passed 3"},
	"children-watch":        {result: "none, a, a b, a b c", left: "b c"},
	"counter":               {result: "12 numbers, now 10", left: "number"},
	"cut-holder":            {result: "['SUSPENDED', 'CONNECTED'], early False, taken True", left: "lock"},
	"cut-waiter":            {result: "['SUSPENDED', 'CONNECTED'], same place True, taken True", left: "lock"},
	"cut-watches":           {result: "['SUSPENDED', 'CONNECTED']", left: "a"},
	"data-watch":            {result: "None None, CREATED 1, CHANGED 2, DELETED None, CREATED 3"},
	"double-barrier":        {result: "entered 4, left 4, wrong 0", left: "barrier"},
	"election":              {result: "3 visits by 1, led ['a', 'b', 'd']", left: "leader"},
	"expired-holder":        {result: "taken True, ['SUSPENDED', 'LOST', 'CONNECTED']", left: "lock"},
	"expired-semaphore":     {result: "taken True, holders ['other']", left: "s s-__lock__"},
	"expired-waiter":        {result: "early False, taken True", left: "lock"},
	"expired-watches":       {result: "['SUSPENDED', 'LOST', 'CONNECTED']"},
	"lock":                  {result: "48 visits by 1, busy True, LockTimeout, contenders ['mine'], free True", left: "lock", spoil: lose(zktest.On(zktest.Create, "/kazoo-lock/lock/*").Nth(9), zktest.On(zktest.Delete, "/kazoo-lock/lock/*").Nth(11))},
	"lock-queue":            {result: "['holder', 'a', 'b', 'c'], served ['b CancelledError', 'a', 'c']", left: "lock"},
	"locking-queue":         {result: "1 locked True, 2 given back True, 2 consumed (True, True), then None, left 0", left: "queue queue/entries queue/taken"},
	"locking-queue-winners": {result: "['0', '1', '2', '3', '4', '5']", left: "queue queue/entries queue/taken"},
	"nodes":                 {result: "/a/b-0000000000 version 0, ['b-0000000000'], 1, ['BadVersionError', 'NotEmptyError', 'NodeExistsError', 'NoNodeError', 'NoChildrenForEphemeralsError'], mine True, gone True"},
	"other-counters":        {result: "float 2.0, curator 258 as 00000102, ValueError", left: "curator float"},
	"partitioner":           {result: "divided [1, 2], taken 3", left: "set set/locks set/locks/1 set/locks/2 set/locks/3 set/party"},
	"party":                 {result: "['a', 'b', 'c'] then ['a'], shallow 0", left: "party shallow", spoil: lose(zktest.On(zktest.Create, "/kazoo-party/party/*").Nth(2))},
	"patient-children":      {result: "['a', 'b'], early False", left: "a b c"},
	"queue":                 {result: "None, 4: ['urgent', 'first', 'second', 'late']", left: "queue"},
	"read-write":            {result: "16 visits by 1, excluded LockTimeout, alone True, shut out LockTimeout", left: "lock"},
	"semaphore":             {result: "crowded False, third False, LockTimeout, holders ['a', 'b'], ValueError, next True", left: "semaphore semaphore-__lock__", spoil: lose(zktest.On(zktest.Create, "/kazoo-semaphore/semaphore/*").Nth(5))},
	"transaction":           {result: "[True, True, True], version 1, /s-0000000001, ['RolledBackError', 'NoNodeError', 'RuntimeInconsistency']", left: "s-0000000001"},
	"tree-cache":            {result: "0 here=, 0 here/old=0, 6, 0 here/a=1, 1 here/a=2, 0 here/a/b=3, 2 here/a/b=3, 2 here/a=2, children ['old']", left: "here here/old"},
	"restart":               {result: "[['SUSPENDED', 'CONNECTED'], ['SUSPENDED', 'CONNECTED']], early False, taken True, same sessions True", left: "data lock"},
}
