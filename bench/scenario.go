package bench

import "fmt"

// Scenario is a way in which clients use a lock or a meeting point. Clients is a number of sessions, or, where the
// title says so, of goroutines or waiters.
type Scenario struct {
	Name, Title string
	Op          string // what one operation is
	Latency     string // what p50 and p99 are the time of
	Clients     []int  // the numbers that are measured
	Min, Max    int    // the numbers that make sense
	// Local operations need no server. They are so short that the clock is read for some of them only.
	Local bool
	// Drains is a queue that drains once in each slice, however long that takes.
	Drains bool
	// Together is a queue that all enter at the same instant. Its rate is of entering and draining.
	Together bool
}

// The names of the scenarios.
const (
	Uncontended   = "uncontended"
	Async         = "async"
	Contended     = "contended"
	Deep          = "deep"
	Crowd         = "crowd"
	Fleet         = "fleet"
	Many          = "many"
	Queue         = "queue"
	Counter       = "counter"
	RWMutex       = "rwmutex"
	Readers       = "readers"
	Semaphore     = "semaphore"
	Election      = "election"
	Local         = "local"
	Relock        = "relock"
	SharedReaders = "shared-readers"
	Barrier       = "barrier"
	DoubleBarrier = "double-barrier"
	Gate          = "gate"
	Latch         = "latch"
	Phaser        = "phaser"
	WaitGroup     = "waitgroup"
	Once          = "once"
	Flight        = "flight"
)

// Permits is how many clients may hold at a time in the scenario semaphore.
const Permits = 4

const (
	maxSessions   = 1000
	maxGoroutines = 10_000

	pair    = "an acquisition and its release"
	acquire = "the call of the acquisition to its return"
	meeting = "the first call of the operation to the last return"
)

// Scenarios are all there are, in the order in which they are measured.
var Scenarios = []Scenario{
	{Name: Uncontended, Title: "One session, which nobody disturbs", Op: pair, Latency: acquire,
		Clients: []int{1}, Min: 1, Max: 1},
	{Name: Async, Title: "The same with WithAsyncUnlock (others: as usual)", Op: pair, Latency: acquire,
		Clients: []int{1}, Min: 1, Max: 1},
	{Name: Contended, Title: "Sessions that want one lock", Op: pair, Latency: acquire,
		Clients: []int{2, 8, 32}, Min: 2, Max: maxSessions},
	{Name: Deep, Title: "Waiters of ten sessions queue one by one behind a holder, then drain", Op: pair + ", while the queue drains",
		Latency: "one grant to the next", Clients: []int{500, 5000}, Min: 2, Max: maxGoroutines, Drains: true},
	{Name: Crowd, Title: "Waiters of ten sessions queue at the same instant behind a holder, then drain", Op: pair + ", with the time in which all enter",
		Latency: "one grant to the next", Clients: []int{500, 5000}, Min: 2, Max: maxGoroutines, Drains: true, Together: true},
	{Name: Fleet, Title: "Waiters queue at the same instant behind a holder, each in a session of its own, then drain", Op: pair + ", with the time in which all enter",
		Latency: "one grant to the next", Clients: []int{500}, Min: 2, Max: maxGoroutines, Drains: true, Together: true},
	{Name: Many, Title: "Goroutines of one session that each lock a path of their own", Op: pair, Latency: acquire,
		Clients: []int{1, 16, 256, 4096}, Min: 1, Max: maxGoroutines},
	{Name: Queue, Title: "Half of the sessions put into one queue, the others receive and acknowledge", Op: "an element, put and acknowledged",
		Latency: "the call that puts an element to the return of its acknowledgement", Clients: []int{2, 8}, Min: 2, Max: maxSessions},
	{Name: Counter, Title: "Sessions that add to one number", Op: "an addition of one", Latency: "its call to its return",
		Clients: []int{1, 8}, Min: 1, Max: maxSessions},
	{Name: RWMutex, Title: "One session write-locks, and nobody disturbs it", Op: pair, Latency: acquire,
		Clients: []int{1}, Min: 1, Max: 1},
	{Name: Readers, Title: "One session writes, all others read", Op: pair, Latency: acquire,
		Clients: []int{17}, Min: 2, Max: maxSessions},
	{Name: Semaphore, Title: "Sessions that want one of four permits", Op: pair, Latency: acquire,
		Clients: []int{16}, Min: 1, Max: maxSessions},
	{Name: Election, Title: "Candidates that resign as soon as they lead", Op: "a leadership", Latency: "the candidacy to the leadership",
		Clients: []int{8}, Min: 1, Max: maxSessions},
	{Name: Local, Title: "Goroutines of one session that want one lock", Op: pair, Latency: acquire,
		Clients: []int{64}, Min: 1, Max: maxGoroutines, Local: true},
	{Name: Relock, Title: "One session that locks again while its place lingers (others: as usual)", Op: pair, Latency: acquire,
		Clients: []int{1}, Min: 1, Max: 1, Local: true},
	{Name: SharedReaders, Title: "Goroutines of one session that read-lock one lock", Op: pair, Latency: acquire,
		Clients: []int{64}, Min: 1, Max: maxGoroutines, Local: true},
	{Name: Barrier, Title: "Parties that meet at a cyclic barrier", Op: "a generation", Latency: meeting,
		Clients: []int{10}, Min: 1, Max: maxSessions},
	{Name: DoubleBarrier, Title: "Parties that enter and leave a double barrier", Op: "a round: all enter, then all leave", Latency: meeting,
		Clients: []int{10}, Min: 1, Max: maxSessions},
	{Name: Gate, Title: "Sessions that all wait at a closed gate, until another one opens it. Only the opening is timed", Op: "an opening, until all have heard of it",
		Latency: "the call that opens to the last return", Clients: []int{10}, Min: 1, Max: maxSessions - 1},
	{Name: Latch, Title: "Sessions that each count one event of a new latch and wait", Op: "the life of a latch", Latency: meeting,
		Clients: []int{10}, Min: 1, Max: maxSessions},
	{Name: Phaser, Title: "Parties that advance a phaser", Op: "a phase", Latency: meeting,
		Clients: []int{10}, Min: 1, Max: maxSessions},
	{Name: WaitGroup, Title: "Sessions that each add a member; then all are done, and one session waits",
		Op: "a round", Latency: meeting, Clients: []int{10}, Min: 1, Max: maxSessions},
	{Name: Once, Title: "Sessions that call a new once at the same time", Op: "a once, until all have the result", Latency: meeting,
		Clients: []int{1, 10}, Min: 1, Max: maxSessions},
	{Name: Flight, Title: "Sessions that ask for one key at the same time", Op: "all calls, until all have a result", Latency: meeting,
		Clients: []int{1, 10}, Min: 1, Max: maxSessions},
}

// ScenarioNamed returns the scenario of that name.
func ScenarioNamed(name string) (Scenario, bool) {
	for _, s := range Scenarios {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// ScenarioNames are the names of all there are.
func ScenarioNames() (names []string) {
	for _, s := range Scenarios {
		names = append(names, s.Name)
	}
	return names
}

// Clients is a number of clients in words.
func Clients(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// With returns the scenario with those of the numbers of clients that it can have.
func (s Scenario) With(clients []int) Scenario {
	s.Clients = nil
	for _, n := range clients {
		if n >= s.Min && n <= s.Max {
			s.Clients = append(s.Clients, n)
		}
	}
	return s
}
