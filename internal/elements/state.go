package elements

// Terms is the data of the base node.
type Terms = terms

// Base is the base node, and Dir one of the directories below it, on the servers.
func (q *Queue) Base() string { return q.terms.Base }

// Dir is like [Queue.Base].
func (q *Queue) Dir(name string) string { return q.dir(name) }
