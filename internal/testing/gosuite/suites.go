package main

const module = "github.com/go-menagerie/menagerie"

// suite is the tests of a package of Go or of x/sync, and what is said of them.
type suite struct {
	name      string
	dir       string   // where they are
	files     []string // which of them
	reference string   // the file with what the tests compare with
	exchanged []string // the types whose zero values become constructors
	others    []string // what else a file may use of the package
	instead   map[string]string
	bodies    map[string]string // functions that are replaced
	changes   []change
	dropped   []verdict
	differs   []verdict

	decls []*decl
	used  map[string]bool // the changes and bodies that were needed
}

// change is a text in a declaration that is replaced.
type change struct {
	in, old, new string
	why          string
}

// verdict is about a test that is not expected to pass.
type verdict struct {
	test string
	uses string // a dropped test cannot be compiled because of this identifier
	why  string
	only int  // if not 0, with that number of sessions only
	luck bool // it may pass, by luck
}

// What many tests have in common.
const (
	fewer    = "fewer rounds: each costs requests"
	slower   = "more time: each call asks servers"
	cheaper  = "the constructors of a distributed object allocate more"
	byText   = "other processes panic with the text of a panic"
	wrapped  = "errors wrap the context's, with the path"
	recovers = "a misuse is a panic that recover stops, sync's is fatal"
	remote   = "callers in other processes get a *RemoteError"
	asks     = "the first call in each session asks servers"
	keys     = "a pointer is no key on other machines"
)

// runCleanups stands for a function of the runtime that only package sync's tests may call.
const runCleanups = `func runCleanups() {
	for range 5 {
		done := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(done chan struct{}) { close(done) }, done)
		runtime.GC()
		<-done
	}
}`

func suites(goroot, xsync string) []*suite {
	all := []*suite{{
		name: "sync", dir: goroot + "/src/sync", reference: "map_reference_test.go",
		files: []string{"mutex_test.go", "rwmutex_test.go", "cond_test.go", "once_test.go", "oncefunc_test.go", "waitgroup_test.go",
			"map_test.go", "map_reference_test.go"},
		exchanged: []string{"Mutex", "RWMutex", "Once", "WaitGroup", "Map"},
		others:    []string{"Locker", "Cond", "OnceFunc", "OnceValue", "OnceValues"},
		instead:   map[string]string{"sync": module + "/internal/testing/gosuite/sync", "internal/testenv": module + "/internal/testing/gosuite/testenv"},
		bodies:    map[string]string{"runCleanups": runCleanups},
		changes: []change{
			{"TestRWMutex", "n := 1000", "n := 50", fewer},
			{"TestCondBroadcast", "n := 200", "n := 20", fewer},
			{"TestCondSignalStealing", "iters < 1000", "iters < 50", fewer},
			{"TestWaitGroupRace", "i < 1000", "i < 100", fewer},
			{"TestConcurrentRange", "1 << 10", "1 << 6", fewer},
			{"TestOnceFunc", "allocs > 2", "allocs > 100", cheaper},
			{"TestOnceValue", "allocs > 2", "allocs > 100", cheaper},
			{"TestOnceValues", "allocs > 2", "allocs > 100", cheaper},
			{"TestWaitGroupAlign", "wg WaitGroup", "wg *WaitGroup", "a constructor in place of a zero field"},
			{"TestWaitGroupAlign", "var x X", "x := X{wg: NewWaitGroup()}", "a constructor in place of a zero field"},
		},
		dropped: []verdict{
			{test: "TestSemaphore", uses: "Runtime_Semacquire", why: "tests the runtime's semaphore"},
			{test: "TestMapMatchesHashTrieMap", uses: "isync", why: "tests a map of internal/sync"},
		},
		differs: []verdict{
			{test: "TestMutexMisuse", why: recovers},
			{test: "TestCondCopy", why: "a copied Cond is not noticed"},
			{test: "TestOnceFunc", why: asks, only: 3},
			{test: "TestOnceValue", why: asks, only: 3},
			{test: "TestOnceValues", why: asks, only: 3},
			{test: "TestOnceFuncPanicNil", why: byText, only: 3},
			{test: "TestOnceFuncGoexit", why: "a function that calls runtime.Goexit does not count: the next call runs it"},
			{test: "TestOnceXGC", why: "a function that another session has run is let go at the next call", only: 3},
			{test: "TestIssue40999", why: keys},
			{test: "TestCompareAndSwap_NonExistingKey", why: keys},
			{test: "TestMapRangeNoAllocations", why: "Range asks servers"},
			{test: "TestMapClearOneAllocation", why: "Clear asks servers"},
		},
	}, {
		name: "semaphore", dir: xsync + "/semaphore",
		files:   []string{"semaphore_test.go", "semaphore_example_test.go", "semaphore_bench_test.go"},
		instead: map[string]string{"golang.org/x/sync/semaphore": module + "/internal/testing/gosuite/semaphore"},
		changes: []change{
			{"TestWeighted", "10000 / n", "1000 / n", fewer},
			{"TestWeightedAcquire", "10*time.Millisecond", "500*time.Millisecond", slower},
			{"TestWeightedAcquireCanceled", "err != context.Canceled", "!errors.Is(err, context.Canceled)", wrapped},
		},
		differs: []verdict{
			{test: "TestWeightedNegativeSizePanic", why: "NewWeighted does no I/O and does not panic: the first call reports the misuse"},
		},
	}, {
		name: "singleflight", dir: xsync + "/singleflight",
		files:     []string{"singleflight_test.go"},
		exchanged: []string{"Group"},
		changes: []change{
			{"TestPanicDo", "time.After(time.Second)", "time.After(time.Minute)", slower},
			{"TestGoexitDo", "time.After(time.Second)", "time.After(time.Minute)", slower},
			{"TestForget", "r.Val != 2", "fmt.Sprint(r.Val) != \"2\"", "a number from another process is JSON's"},
		},
		dropped: []verdict{
			{test: "TestPanicErrorUnwrap", uses: "panicError", why: "tests an internal type"},
		},
		differs: []verdict{
			{test: "TestPanicDo", why: remote, only: 3, luck: true},
			{test: "TestGoexitDo", why: remote, only: 3, luck: true},
			{test: "TestPanicDoSharedByDoChan", why: remote, only: 3},
			{test: "ExampleGroup", why: "of two sessions that ask at the same time either may run", only: 3, luck: true},
		},
	}}
	for _, s := range all {
		s.used = map[string]bool{}
	}
	return all
}
