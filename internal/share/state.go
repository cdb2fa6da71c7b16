package share

import (
	"fmt"
	"log/slog"
)

// state is what a [Cohort], or a batch of readers, is at. It says which fields mean something.
type state uint8

const (
	// idle: no ticket, and nobody waits. A batch that is over stays idle.
	idle state = iota
	// acquiring: one goroutine gets a ticket on behalf of all who wait.
	acquiring
	// held: there is a ticket, and a lease of it. The lease may have ended: whoever ended it is about to say so.
	held
	// lingering: there is a ticket, and nobody here holds it or waits for it.
	lingering
	// replacing: the hold gives its node up in a transaction that puts another one in its place. The ticket is that
	// transaction's, so nobody else hands it on; the hold keeps the others of this process out.
	replacing
	// lost: a hold of the form without leases lost its ticket. Its critical section runs on, whatever the
	// servers say, and keeps the others of this process out until its Unlock.
	lost
)

func (s state) String() string {
	return [...]string{"idle", "acquiring", "held", "lingering", "replacing", "lost"}[s]
}

type change struct{ from, to state }

// changes are all changes of state, each with the events that bring it about. A batch of readers has those between
// idle, acquiring and held only.
var changes = map[change]string{
	{idle, acquiring}: "somebody locks, or tries to",
	{acquiring, held}: "granted",
	{acquiring, idle}: "refused; or the last one who waited has gone; or the ticket was lost at once; or Close",
	{held, held}:      "Unlock, and the next one of this process gets the same ticket: a hand-over",
	{held, acquiring}: "Unlock, and others of this process wait, but no further hand-over is allowed",
	{held, lingering}: "Unlock, and nobody is known to wait, here or elsewhere",
	{held, idle}:      "Unlock, and nobody waits here; or the lease was lost",
	{held, replacing}: "a wait for a condition, or a downgrade, begins",
	{held, lost}:      "a hold without lease was lost, or ended by its bound",
	{lingering, held}: "somebody locks",
	{lingering, idle}: "its time is up; or somebody else queues; or the ticket was lost; or Close",
	{replacing, held}: "the servers refused: the same ticket is held again",
	{replacing, idle}: "replaced; or lost; or nobody knows",
	{replacing, lost}: "the hold was one without lease, and is lost or ended by its bound",
	{lost, idle}:      "Unlock",
}

// Strict has a change that is not in the table panic, in tests. Otherwise it is logged, and made: whoever asked for
// it has set the data of the new state.
var Strict bool

func (s *state) become(to state, log *slog.Logger) {
	if _, ok := changes[change{*s, to}]; !ok {
		what := fmt.Sprintf("share: %v cannot become %v", *s, to)
		log.Error(what)
		if Strict {
			panic(what)
		}
	}
	*s = to
}
