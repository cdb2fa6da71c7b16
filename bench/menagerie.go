package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zkflight"
	"github.com/go-menagerie/menagerie/zklatch"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zkphaser"
	"github.com/go-menagerie/menagerie/zkrwmutex"
	"github.com/go-menagerie/menagerie/zksemaphore"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zkwaitgroup"
)

// menagerie is this module as a user gets it.
var menagerie = NewPeer("menagerie", map[string]Opener{
	Uncontended:   Exclusive(each(mutex())),
	Async:         Exclusive(each(mutex(zksync.WithAsyncUnlock()))),
	Contended:     Exclusive(each(mutex())),
	Relock:        Exclusive(each(mutex(zksync.WithLinger(time.Second)))),
	Local:         Exclusive(shared(mutex())),
	Deep:          Exclusive(deepCrew),
	Crowd:         Exclusive(deepCrew),
	Fleet:         Exclusive(deepCrew),
	Many:          manyLocks,
	Queue:         queue,
	Counter:       counter,
	RWMutex:       Exclusive(each(writer)),
	Readers:       readersAndWriter,
	SharedReaders: shared(reader),
	Semaphore: limited(Permits, each(func(s *zksync.Session, path string) acquirer {
		w := zksemaphore.NewWeighted(s, path+"/semaphore", Permits)
		return func(ctx context.Context) (*zksync.Lease, error) { return w.AcquireLease(ctx, 1) }
	})),
	Election: Exclusive(each(func(s *zksync.Session, path string) acquirer {
		return zkelection.New(s, path, zkelection.Candidate{ID: "bench"}).Campaign
	})),
	Barrier: meet(func(at Site, s *zksync.Session) party {
		b := zkbarrier.NewBarrier(s, at.Path+"/barrier", at.Clients)
		return func(ctx context.Context) error { _, err := b.Await(ctx); return err }
	}),
	DoubleBarrier: stages(func(at Site, s *zksync.Session) []party {
		b := zkbarrier.NewDoubleBarrier(s, at.Path+"/double", at.Clients)
		return []party{b.Enter, b.Leave}
	}),
	Gate: gate,
	Latch: meet(func(at Site, s *zksync.Session) party {
		return fresh(at.Path+"/latch", func(ctx context.Context, path string) error {
			l := zklatch.New(s, path, at.Clients)
			if err := l.CountDown(ctx); err != nil {
				return err
			}
			return l.Wait(ctx)
		})
	}),
	Phaser:    phaser,
	WaitGroup: waitGroup,
	Once: meet(func(at Site, s *zksync.Session) party {
		return fresh(at.Path+"/once", func(ctx context.Context, path string) error {
			_, err := zkonce.New(s, path).DoContext(ctx, func(context.Context) ([]byte, error) { return nil, nil })
			return err
		})
	}),
	Flight: meet(func(at Site, s *zksync.Session) party {
		f := zkflight.New[int](s, at.Path+"/flight")
		return func(ctx context.Context) error {
			_, err, _ := f.Do(ctx, "key", func(context.Context) (int, error) { return 1, nil })
			return err
		}
	}),
})

// acquirer acquires one lock, semaphore or leadership.
type acquirer func(ctx context.Context) (*zksync.Lease, error)

// maker makes an acquirer of the object at path.
type maker func(s *zksync.Session, path string) acquirer

func mutex(opts ...zksync.Option) maker {
	return func(s *zksync.Session, path string) acquirer { return zksync.NewMutex(s, path, opts...).LockContext }
}

func writer(s *zksync.Session, path string) acquirer { return zkrwmutex.New(s, path).LockContext }

func reader(s *zksync.Session, path string) acquirer { return zkrwmutex.New(s, path).RLockContext }

type leaseLocker struct {
	acquire acquirer
	lease   *zksync.Lease
}

func (l *leaseLocker) Acquire(ctx context.Context) (err error) {
	l.lease, err = l.acquire(ctx)
	return err
}

func (l *leaseLocker) Release() error { return l.lease.Unlock() }

// sessions opens n sessions, and a crew that closes them.
func sessions(ctx context.Context, at Site, n int) ([]*zksync.Session, *Crew, error) {
	opts := []zksync.SessionOption{zksync.WithTimeout(at.Timeout), zksync.WithDialer(at.Dial), zksync.WithACL(at.Secured.acl()...)}
	for _, c := range at.Secured.Auth {
		opts = append(opts, zksync.WithAuth(c.Scheme, c.Secret))
	}
	end := func(s *zksync.Session) { _ = s.Close() }
	all, err := openAll(n, func() (*zksync.Session, error) { return zksync.Connect(ctx, at.Servers, opts...) }, end)
	if err != nil {
		return nil, nil, err
	}
	return all, &Crew{Close: func() { closeAll(all, end) }}, nil
}

// each gives each client a session and an object.
func each(m maker) Opener {
	return func(ctx context.Context, at Site) (*Crew, error) {
		all, crew, err := sessions(ctx, at, at.Clients)
		for _, s := range all {
			crew.Lockers = append(crew.Lockers, &leaseLocker{acquire: m(s, at.Path)})
		}
		return crew, err
	}
}

// shared gives all clients one object of one session.
func shared(m maker) Opener {
	return func(ctx context.Context, at Site) (*Crew, error) {
		all, crew, err := sessions(ctx, at, 1)
		if err != nil {
			return nil, err
		}
		object := m(all[0], at.Path)
		for range at.Clients {
			crew.Lockers = append(crew.Lockers, &leaseLocker{acquire: object})
		}
		return crew, nil
	}
}

// readersAndWriter makes the last session the writer. It must be alone, so it counts as much as all.
func readersAndWriter(ctx context.Context, at Site) (*Crew, error) {
	all, crew, err := sessions(ctx, at, at.Clients)
	inside, everybody := new(atomic.Int64), int64(at.Clients)
	for i, s := range all {
		m, weight := maker(reader), int64(1)
		if i == len(all)-1 {
			m, weight = writer, everybody
		}
		crew.Lockers = append(crew.Lockers, &looker{&leaseLocker{acquire: m(s, at.Path)}, inside, weight, everybody})
	}
	return crew, err
}

// deepCrew gives every waiter an object, and so a place in the queue of its own.
func deepCrew(ctx context.Context, at Site) (*Crew, error) {
	n := at.deepSessions()
	all, crew, err := sessions(ctx, at, n)
	if err != nil {
		return nil, err
	}
	for i := range at.Clients + 1 {
		crew.Lockers = append(crew.Lockers, &leaseLocker{acquire: mutex()(all[i%n], at.Path)})
	}
	return crew, crew.countChildren(ctx, at)
}

// party is what one session does in an operation of all.
type party func(ctx context.Context) error

func meet(m func(at Site, s *zksync.Session) party) Opener {
	return stages(func(at Site, s *zksync.Session) []party { return []party{m(at, s)} })
}

// stages has all sessions do the same, one stage after the other: nobody begins the next before all are done.
func stages(m func(at Site, s *zksync.Session) []party) Opener {
	return func(ctx context.Context, at Site) (*Crew, error) {
		all, crew, err := sessions(ctx, at, at.Clients)
		if err != nil {
			return nil, err
		}
		var parties [][]party // by stage
		for _, s := range all {
			for i, p := range m(at, s) {
				if i == len(parties) {
					parties = append(parties, nil)
				}
				parties[i] = append(parties[i], p)
			}
		}
		crew.Step = func(ctx context.Context) error {
			for _, stage := range parties {
				if err := together(ctx, stage, func(ctx context.Context, p party) error { return p(ctx) }); err != nil {
					return err
				}
			}
			return nil
		}
		return crew, nil
	}
}

// fresh calls f with a path of its own each time, the same for all parties.
func fresh(path string, f func(ctx context.Context, path string) error) party {
	n := 0
	return func(ctx context.Context) error {
		n++
		return f(ctx, fmt.Sprintf("%s-%d", path, n))
	}
}

// waitGroup has all sessions add a member, and then all done while the first one waits.
func waitGroup(ctx context.Context, at Site) (*Crew, error) {
	first := true
	return stages(func(at Site, s *zksync.Session) []party {
		g := zkwaitgroup.New(s, at.Path+"/group")
		done := g.DoneContext
		if first {
			first = false
			done = func(ctx context.Context) error {
				return together(ctx, []party{g.WaitContext, g.DoneContext}, func(ctx context.Context, p party) error { return p(ctx) })
			}
		}
		return []party{func(ctx context.Context) error { return g.AddContext(ctx, 1) }, done}
	})(ctx, at)
}

// phaser registers all parties before anything is measured.
func phaser(ctx context.Context, at Site) (*Crew, error) {
	all, crew, err := sessions(ctx, at, at.Clients)
	if err != nil {
		return nil, err
	}
	phasers := make([]*zkphaser.Phaser, len(all))
	for i, s := range all {
		phasers[i] = zkphaser.New(s, at.Path+"/phaser")
		if _, err := phasers[i].Register(ctx); err != nil {
			crew.Close()
			return nil, err
		}
	}
	crew.Step = func(ctx context.Context) error {
		return together(ctx, phasers, func(ctx context.Context, p *zkphaser.Phaser) error {
			_, err := p.ArriveAndAwaitAdvance(ctx)
			return err
		})
	}
	return crew, nil
}
