package zkgroup

// AssignOption is an option of [Group.Assign].
type AssignOption func(*assignment)

// WithItemErrors has f hear of each run of an item that has failed at this member. The attempts of an item count from 1, and go on when it
// moves. f runs in the goroutine of the item, before the next attempt; several may run at one time.
func WithItemErrors(f func(item string, attempt int, err error)) AssignOption {
	return func(a *assignment) { a.told = f }
}

// WithShare has f hear which items belong to this member, in the order of its list: when they are divided for the first time, and after each change.
// An item that has moved here may still wait for the lease of its former owner, and an item may be done. f must not block.
func WithShare(f func(items []string)) AssignOption {
	return func(a *assignment) { a.shared = f }
}

// Stop makes the error with which a function of [Group.Assign] ends the Assign of its member. Assign returns err, which may be nil, once all other
// runs here have ended. The item is not done. Other members go on.
func Stop(err error) error { return &stopped{err} }

// stopped is the error of Stop.
type stopped struct{ err error }

func (s *stopped) Error() string {
	if s.err == nil {
		return "zkgroup: stop"
	}
	return s.err.Error()
}

func (s *stopped) Unwrap() error { return s.err }
