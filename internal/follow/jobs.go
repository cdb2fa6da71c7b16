package follow

import "sync"

// job is something to read of one node.
type job struct {
	path string
	what work
}

type work int

const (
	read   work = iota // the data
	list               // the names of the children
	verify             // whether the node is still as it is known
	expect             // nothing: the node is not there, and its creation is watched
)

// jobs are the reads to make, in the order in which they became necessary. Each is there once. So they take no more memory than
// the tree, however fast a node changes, and however slow the body of the loop is.
type jobs struct {
	mu     sync.Mutex
	line   []job
	queued map[job]struct{}
	come   chan struct{} // has a value when there may be jobs
}

func newJobs() *jobs { return &jobs{queued: make(map[job]struct{}), come: make(chan struct{}, 1)} }

// add adds a job. It does not block.
func (q *jobs) add(j job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, there := q.queued[j]; there {
		return
	}
	q.queued[j] = struct{}{}
	q.line = append(q.line, j)
	select {
	case q.come <- struct{}{}:
	default:
	}
}

// take returns the next job. A later change of its node is another job.
func (q *jobs) take() (j job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.line) == 0 {
		q.line = nil // frees the memory
		return j, false
	}
	j, q.line = q.line[0], q.line[1:]
	delete(q.queued, j)
	return j, true
}
