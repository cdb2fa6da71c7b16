package share

import (
	"fmt"

	"github.com/go-menagerie/menagerie/internal/logs"
)

// state is the state of a [Cohort], or of a batch of readers. It says which of its fields have a meaning.
type state uint8

const (
	// idle: there is no ticket, and nobody waits. A batch that is over stays idle.
	idle state = iota
	// acquiring: one goroutine gets a ticket for all that wait, or finds out whether the old one may be handed over again.
	acquiring
	// held: there is a ticket, and a lease of it. The lease may have
	// ended already: then whoever ended it is about to change the state.
	held
	// lingering: there is a ticket, and nobody here holds it or waits for it.
	lingering
	// replacing: the hold gives its node up in a transaction that puts another node
	// in its place. The ticket belongs to that transaction, so nobody else hands it
	// on. The hold still keeps the other goroutines of this process out: they wait.
	replacing
	// runsOn: a hold of the form without leases lost its ticket (of a lease that is lost the state is idle). Its critical section runs on, whatever
	// the servers say, and keeps the other goroutines of this process out until its Unlock: they wait.
	runsOn
)

func (s state) String() string {
	return [...]string{"idle", "acquiring", "held", "lingering", "replacing", "runsOn"}[s]
}

// changes are all changes of state that are allowed, from the first to the second, each with the events
// that bring it about. A batch of readers has only those between idle, acquiring and held.
var changes = [...][runsOn + 1]string{
	idle: {
		acquiring: "somebody locks, or tries to",
	},
	acquiring: {
		held: "granted; or no other contender waits, so the old ticket is handed over again",
		idle: "refused; or the last one who waited has gone; or the ticket was lost at once; or Close",
	},
	held: {
		held:      "Unlock, and the next one of this process gets the same ticket: a hand-over",
		acquiring: "Unlock, and others of this process wait, but no further hand-over is known to be allowed",
		lingering: "Unlock, and nobody is known to wait, here or elsewhere",
		idle:      "Unlock, and nobody waits here; or the lease was lost",
		replacing: "a wait for a condition, or a downgrade, begins",
		runsOn:    "a hold without lease was lost, or ended by its bound",
	},
	lingering: {
		held: "somebody locks",
		idle: "its time is up; or the children of the directory change; or the connection or the ticket was lost; or Close",
	},
	replacing: {
		held:   "the servers refused: the same ticket is held again",
		idle:   "replaced; or lost; or nobody knows",
		runsOn: "the hold was one without lease, and is lost or ended by its bound",
	},
	runsOn: {
		idle: "Unlock",
	},
}

// Strict makes a change that is not in the table panic. Tests set it. Otherwise such
// a change is logged and made: its caller sets the data of the new state in any case.
var Strict bool

// become changes the state, and reports a change that is not in the table: see Strict.
func (s *state) become(to state, log *logs.Log) {
	if changes[*s][to] == "" {
		what := fmt.Errorf("share: %v cannot become %v", *s, to)
		log.Once("state", what.Error()).Error("a bug: a lock has changed its state in a way that it must not; please report it", "error", what)
		if Strict {
			panic(what)
		}
	}
	*s = to
}
