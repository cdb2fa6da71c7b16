package zkconn

import "sync"

// workers runs functions in goroutines that are kept for the next one. A request
// runs deep into the client's encoder, and growing the stack of a new goroutine for
// each costs more than the request's own work.
type workers struct {
	jobs chan func()
	quit chan struct{}
	wg   sync.WaitGroup

	mu     sync.Mutex
	idle   int
	closed bool
}

// maxIdle bounds the goroutines that wait for work; more are started when needed.
const maxIdle = 4

func newWorkers() *workers {
	return &workers{jobs: make(chan func()), quit: make(chan struct{})}
}

// run runs f in a goroutine, at once.
func (p *workers) run(f func()) {
	select {
	case p.jobs <- f: // somebody is idle
		return
	default:
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		go f() // joined by whoever handed it over; see close
		return
	}
	p.wg.Add(1)
	p.mu.Unlock()
	go p.work(f)
}

func (p *workers) work(f func()) {
	defer p.wg.Done()
	for {
		f()
		p.mu.Lock()
		if p.idle >= maxIdle || p.closed {
			p.mu.Unlock()
			return
		}
		p.idle++
		p.mu.Unlock()
		select {
		case f = <-p.jobs:
		case <-p.quit:
			f = nil
		}
		p.mu.Lock()
		p.idle--
		p.mu.Unlock()
		if f == nil {
			return
		}
	}
}

// close sends the idle goroutines home and, with join, waits for the busy ones. What is still
// handed over afterwards has an owner that joins it.
func (p *workers) close(join bool) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	close(p.quit)
	if join {
		p.wg.Wait()
	}
}
