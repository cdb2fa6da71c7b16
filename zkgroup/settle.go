package zkgroup

import "time"

// unrest is the time since the workers have changed, while no division has followed.
type unrest struct {
	since time.Time // the oldest such change; zero if there is none
	calm  *time.Timer
}

// longestUnrest is how many times that of WithSettle changes can put a division off, so that the items of a dead member do
// not wait for ever while others come and go.
const longestUnrest = 5

// stir divides the items among the present workers, or lets that wait as WithSettle says. mu is held.
func (a *assignment) stir() {
	u := &a.unrest
	if u.calm != nil {
		u.calm.Stop()
	}
	switch now := time.Now(); {
	case !a.known || a.parts.Settled(): // such as a worker that was lost, and is back
		u.since = time.Time{}
	case a.settle == 0 || a.parts.Alone(a.m.id):
		a.parts.Settle()
		u.since = time.Time{}
	default:
		if u.since.IsZero() {
			u.since = now
		}
		wait := min(a.settle, u.since.Add(longestUnrest*a.settle).Sub(now))
		var calm *time.Timer
		calm = time.AfterFunc(wait, func() {
			a.update(func() {
				if u.calm == calm { // else it was stopped too late
					a.parts.Settle()
					u.since = time.Time{}
				}
			})
		})
		u.calm = calm
	}
}
