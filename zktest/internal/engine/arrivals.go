package engine

import "time"

// arrival is something that came in: a frame, a four-letter word or the end of the stream.
type arrival struct {
	frame  []byte
	word   string
	eof    bool
	at     time.Time
	walled bool      // it came in while a partition kept it from the server
	resent time.Time // when it arrives after the partition
	gone   bool      // it was taken out of its turn
}

// arrivals is what has come in on a connection and is not handled yet, oldest first.
type arrivals struct {
	queue  fifo[*arrival]
	urgent fifo[*arrival] // those of the queue that may overtake, and some that are gone
	bytes  int
}

// push adds an arrival. An urgent one may overtake those before it.
func (q *arrivals) push(a *arrival, urgent bool) {
	q.queue.push(a)
	q.bytes += len(a.frame)
	if urgent {
		q.urgent.push(a)
	}
}

// front returns the oldest arrival, nil if there is none.
func (q *arrivals) front() *arrival {
	for q.queue.len() > 0 {
		if a := *q.queue.at(0); !a.gone {
			return a
		}
		q.queue.pop()
	}
	return nil
}

// overtaker returns the oldest heartbeat, or the end of the stream; nil if there is neither.
func (q *arrivals) overtaker() *arrival {
	for q.urgent.len() > 0 {
		if a := *q.urgent.at(0); !a.gone {
			return a
		}
		q.urgent.pop()
	}
	return nil
}

// take removes an arrival. One that is not the oldest leaves its place when its turn comes.
func (q *arrivals) take(a *arrival) *arrival {
	a.gone = true
	q.bytes -= len(a.frame)
	return a
}

// drop removes the arrivals that f selects.
func (q *arrivals) drop(f func(*arrival) bool) {
	for a := range q.all {
		if f(a) {
			q.take(a)
			a.frame = nil
		}
	}
}

// all yields what is there, oldest first.
func (q *arrivals) all(yield func(*arrival) bool) {
	for i := range q.queue.len() {
		if a := *q.queue.at(i); !a.gone && !yield(a) {
			return
		}
	}
}
