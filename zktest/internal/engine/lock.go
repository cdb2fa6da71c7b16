package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// lock is a mutex that notices when a hook calls the server that runs it. Such a call would wait for
// ever for its own goroutine; so it is reported, and let through.
type lock struct {
	mutex sync.Mutex
	hook  atomic.Int64 // the goroutine that holds the lock and runs hooks; 0 for none
	depth int          // how often it has taken the lock again; guarded by the lock
	// misuse is called when a hook calls the server.
	misuse func()
}

func (l *lock) Lock() {
	if l.mutex.TryLock() {
		return
	}
	if hook := l.hook.Load(); hook != 0 && hook == goroutine() {
		l.depth++
		if l.misuse != nil {
			l.misuse()
		}
		return
	}
	l.mutex.Lock()
}

func (l *lock) Unlock() {
	if l.depth > 0 {
		l.depth--
		return
	}
	l.mutex.Unlock()
}

// goroutine returns the number of the calling goroutine. Only hooks pay for that, and whoever finds
// the lock taken while one runs.
func goroutine() int64 {
	var buf [40]byte
	text := buf[len("goroutine "):runtime.Stack(buf[:], false)]
	var id int64
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		id = 10*id + int64(c-'0')
	}
	return id
}
