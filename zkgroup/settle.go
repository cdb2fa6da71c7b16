package zkgroup

import "time"

// unrest is the time since the workers have changed, while no division has followed.
type unrest struct {
	since, last time.Time // the oldest and the newest such change; since is zero if there is none
	ends        *time.Timer
}

// longestUnrest is how many times that of WithSettle later changes can put a division off: the items of a dead member
// must not wait for ever while others come and go.
const longestUnrest = 5

// stir is called when the workers have changed. mu is held.
func (a *assignment) stir() {
	a.unrest.last = time.Now()
	a.divide()
}

// divide divides the items among the present workers, or has that wait as WithSettle says. mu is held.
//
// A division that was put off for too long counts only members that have been there for as long as WithSettle says, so that no item is
// given to members again and again that go before they take it. They have taken their share then: a new member waits no longer.
func (a *assignment) divide() {
	u := &a.unrest
	if u.ends != nil {
		u.ends.Stop()
		u.ends = nil
	}
	switch {
	case a.over != nil || !a.known:
		return
	case a.settle == 0 || a.parts.Alone(a.m.id):
		a.parts.Settle()
	}
	if a.parts.Settled() { // perhaps because a worker that was lost is back
		u.since = time.Time{}
		return
	}
	now := time.Now()
	if u.since.IsZero() {
		u.since = now
	}
	longest := a.settle
	if a.parts.Has(a.m.id) {
		longest *= longestUnrest
	}
	wait, age := u.last.Add(a.settle).Sub(now), time.Duration(0)
	if left := u.since.Add(longest).Sub(now); left < wait {
		wait, age = left, a.settle
	}
	a.divideAfter(wait, age)
}

// divideAfter divides the items after a while, among the workers that have been there for so long. mu is held.
func (a *assignment) divideAfter(wait, age time.Duration) {
	u := &a.unrest
	var ends *time.Timer
	ends = time.AfterFunc(wait, func() {
		a.update(func() {
			if u.ends == ends { // else it was stopped too late
				a.parts.SettleOn(age)
				u.since = time.Time{}
				a.divide()
			}
		})
	})
	u.ends = ends
}
