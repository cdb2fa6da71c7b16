//go:build three

package sync

import (
	"sync"
	"sync/atomic"

	"github.com/go-menagerie/menagerie/internal/testing/gosuite/play"
	"github.com/go-menagerie/menagerie/zkcond"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

const sessions = 3

// each makes one object in each session, all at one path.
func each[T any](make1 func(s *zksync.Session, path string) T) (all [sessions]T) {
	path := play.Path()
	for i := range all {
		all[i] = make1(play.Session(i), path)
	}
	return all
}

// Mutex is unlocked by the session that has locked it.
type Mutex struct {
	all    [sessions]*zksync.Mutex
	holder atomic.Int32
}

func NewMutex() *Mutex {
	return &Mutex{all: each(func(s *zksync.Session, path string) *zksync.Mutex { return zksync.NewMutex(s, path) })}
}

func (m *Mutex) Lock() {
	i := play.Turn(sessions)
	m.all[i].Lock()
	m.holder.Store(int32(i))
}

func (m *Mutex) TryLock() bool {
	i := play.Turn(sessions)
	ok := m.all[i].TryLock()
	if ok {
		m.holder.Store(int32(i))
	}
	return ok
}

func (m *Mutex) Unlock() { m.all[m.holder.Load()].Unlock() }

// RWMutex is unlocked by a session that has locked it.
type RWMutex struct {
	all    [sessions]*zkrwmutex.RWMutex
	writer atomic.Int32

	mu      sync.Mutex
	readers []int // the sessions that read, one entry for each hold
}

func NewRWMutex() *RWMutex {
	return &RWMutex{all: each(func(s *zksync.Session, path string) *zkrwmutex.RWMutex { return zkrwmutex.New(s, path) })}
}

func (m *RWMutex) Lock() {
	i := play.Turn(sessions)
	m.all[i].Lock()
	m.writer.Store(int32(i))
}

func (m *RWMutex) TryLock() bool {
	i := play.Turn(sessions)
	ok := m.all[i].TryLock()
	if ok {
		m.writer.Store(int32(i))
	}
	return ok
}

func (m *RWMutex) Unlock() { m.all[m.writer.Load()].Unlock() }

func (m *RWMutex) RLock() {
	i := play.Turn(sessions)
	m.all[i].RLock()
	m.reads(i)
}

func (m *RWMutex) TryRLock() bool {
	i := play.Turn(sessions)
	ok := m.all[i].TryRLock()
	if ok {
		m.reads(i)
	}
	return ok
}

func (m *RWMutex) reads(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.readers = append(m.readers, i)
}

func (m *RWMutex) RUnlock() {
	i := 0
	m.mu.Lock()
	if n := len(m.readers); n > 0 {
		i, m.readers = m.readers[0], m.readers[1:]
	}
	m.mu.Unlock()
	m.all[i].RUnlock()
}

func (m *RWMutex) RLocker() Locker { return (*reader)(m) }

type reader RWMutex

func (r *reader) Lock()   { (*RWMutex)(r).RLock() }
func (r *reader) Unlock() { (*RWMutex)(r).RUnlock() }

// Cond waits in the session that holds. Any session signals.
type Cond struct {
	L   Locker
	all [sessions]*zkcond.Cond
}

func NewCond(l Locker) *Cond {
	c, path := &Cond{L: l}, play.Path()
	for i := range c.all {
		c.all[i] = zkcond.New(l.(*Mutex).all[i], path)
	}
	return c
}

func (c *Cond) Wait() {
	m := c.L.(*Mutex)
	i := m.holder.Load()
	c.all[i].Wait()
	m.holder.Store(i)
}

func (c *Cond) Signal()    { c.all[play.Turn(sessions)].Signal() }
func (c *Cond) Broadcast() { c.all[play.Turn(sessions)].Broadcast() }

// Once runs in any session.
type Once struct{ all [sessions]*zkonce.Once }

func NewOnce() *Once {
	return &Once{each(func(s *zksync.Session, path string) *zkonce.Once { return zkonce.New(s, path) })}
}

func (o *Once) Do(f func()) { o.all[play.Turn(sessions)].Do(f) }

func OnceFunc(f func()) func() {
	all := each(func(s *zksync.Session, path string) func() { return zkonce.OnceFunc(s, path, f) })
	return func() { all[play.Turn(sessions)]() }
}

func OnceValue[T any](f func() T) func() T {
	all := each(func(s *zksync.Session, path string) func() T { return zkonce.OnceValue(s, path, f) })
	return func() T { return all[play.Turn(sessions)]() }
}

func OnceValues[T1, T2 any](f func() (T1, T2)) func() (T1, T2) {
	all := each(func(s *zksync.Session, path string) func() (T1, T2) { return zkonce.OnceValues(s, path, f) })
	return func() (T1, T2) { return all[play.Turn(sessions)]() }
}

// WaitGroup is changed and awaited in any session.
type WaitGroup struct {
	all [sessions]*zkwaitgroup.WaitGroup
}

func NewWaitGroup() *WaitGroup {
	return &WaitGroup{each(func(s *zksync.Session, path string) *zkwaitgroup.WaitGroup { return zkwaitgroup.New(s, path) })}
}

func (g *WaitGroup) Add(n int)   { g.all[play.Turn(sessions)].Add(n) }
func (g *WaitGroup) Done()       { g.all[play.Turn(sessions)].Done() }
func (g *WaitGroup) Wait()       { g.all[play.Turn(sessions)].Wait() }
func (g *WaitGroup) Go(f func()) { g.all[play.Turn(sessions)].Go(f) }
