package zkgroup

// AssignOption is an option of [Group.Assign].
type AssignOption func(*assignment)

// WithItemErrors calls f for each run of an item that has failed at this member, in the item's goroutine. The
// attempts count from 1, and go on when the item moves.
func WithItemErrors(f func(item string, attempt int, err error)) AssignOption {
	return func(a *assignment) { a.onError = f }
}

// WithShare calls f with the items of this member when they are divided, and after each change; the lease of
// an item may come later. f must not block, as Close of the session and Leave would: they wait for f.
func WithShare(f func(items []string)) AssignOption {
	return func(a *assignment) { a.onShare = f }
}

// Stop makes an error that ends the Assign whose function returns it. Assign then returns err, which may be
// nil, once all other runs here have ended. The item is not done. Other members continue.
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
