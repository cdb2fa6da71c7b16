package zkshard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

// Shards are sessions with several ensembles, among which names are divided.
type Shards struct {
	all      []*ensemble // those of both lists
	to, from []*ensemble // from is empty unless the process moves

	ctx  context.Context // ends when Close begins
	stop context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex
	news chan struct{}    // closed and replaced when anything below changes, or an ensemble
	seen map[string]terms // by the ensemble's name: what was read last
	wish *wish            // nil until each ensemble has a name
}

// made is s, which Connect has made. Of a zero or nil value it panics.
func (s *Shards) made() *Shards {
	if s == nil || s.ctx == nil {
		panic(errs.Unmade("zkshard", "a Shards", "Connect"))
	}
	return s
}

// WithMoving is for the first of two rollouts that change the list of ensembles: Connect gets the new list, and WithMoving the old
// one. See [Shards.NewMutex], and docs/scale.md for the steps.
func WithMoving(from []string) zksync.SessionOption {
	return session.ForSession(func(s *session.Settings) {
		if s.Moving = slices.Clone(from); len(from) == 0 {
			s.Misuse("WithMoving without the old list")
		}
	})
}

// Connect opens a session with each ensemble, given as a connect string. The first process records the list on all of them, so
// these must be reachable; later an ensemble that is down concerns its names only. The order does not matter, nor do addresses:
// an ensemble is known by a record at [Path] below its chroot. A process with another list is refused with [zksync.ErrMisuse], one
// with the new list of a move until no process with the old one is left: for that it waits up to one and a half session timeouts.
func Connect(ctx context.Context, servers []string, opts ...zksync.SessionOption) (*Shards, error) {
	s := &Shards{news: make(chan struct{}), seen: make(map[string]terms)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	set, err := s.prepare(servers, session.Options[session.SessionOption](opts))
	if err == nil && ctx.Err() != nil {
		err = errs.OfContext(ctx)
	}
	for i := 0; i < len(s.all) && err == nil; i++ {
		err = s.all[i].open()
	}
	if err == nil {
		for _, x := range s.all {
			s.work.Go(func() {
				err := x.s.Ready(s.ctx)
				s.under(func() { x.up, x.err = err == nil, err; s.tell() })
			})
		}
		err = s.ready(ctx, set.Timeout/3)
	}
	if err != nil {
		return nil, errs.Wrap("zkshard", "connect", strings.Join(servers, " "), errors.Join(err, s.close()))
	}
	if s.moves() {
		if s.up() {
			_, _ = s.advance(ctx) // so a process that runs alone can be followed by one of the next rollout at once
		}
		s.work.Go(s.move)
	}
	return s, nil
}

// prepare makes the ensembles of both lists.
func (s *Shards) prepare(servers []string, opts []session.SessionOption) (set session.Settings, err error) {
	if set, err = session.SettingsOf(opts); err != nil {
		return set, err
	}
	known := make(map[string]*ensemble)
	if s.to, err = s.list(known, servers, opts); err == nil {
		s.from, err = s.list(known, set.Moving, opts)
	}
	if err == nil && len(s.to) == 0 {
		err = errs.Misuse("no ensemble")
	}
	return set, err
}

// list are the ensembles of the connect strings. known has those of earlier calls, by servers and chroot.
func (s *Shards) list(known map[string]*ensemble, servers []string, opts []session.SessionOption) (list []*ensemble, err error) {
	for _, text := range servers {
		x := &ensemble{shards: s, servers: text, opened: make(chan struct{})}
		x.s, err = session.Prepare(text, append(slices.Clone(opts), session.ForSession(func(set *session.Settings) {
			set.Ensembles, set.Admit = true, x.admit
			if set.File != "" { // each session has its own
				sum := sha256.Sum256([]byte(text))
				set.File += "." + hex.EncodeToString(sum[:4])
			}
		}))...)
		if err != nil {
			return nil, err
		}
		key := x.s.Servers() + x.s.Full("/")
		if known[key] == nil {
			known[key], s.all = x, append(s.all, x)
		}
		if x = known[key]; slices.Contains(list, x) {
			return nil, errs.Misuse("the ensemble %s is given twice", errs.Quote(text))
		}
		list = append(list, x)
	}
	return list, nil
}

// ready waits until the process was admitted on each ensemble; on those without a connection only for a while, once others have
// told their names.
func (s *Shards) ready(ctx context.Context, patience time.Duration) error {
	late := false
	grace := time.NewTimer(patience)
	defer grace.Stop()
	for {
		s.mu.Lock()
		if late {
			s.assume()
		}
		news, up, missing, refused := s.news, false, (*ensemble)(nil), error(nil)
		for _, x := range s.all {
			switch {
			case x.up:
				up = true
			case x.err != nil && x.s.Client().Refused() != nil:
				refused = x.err
			case !late, s.wish == nil, x.s.State() == session.Connected:
				missing = cmp.Or(missing, x)
			}
		}
		s.mu.Unlock()
		if refused != nil || up && missing == nil { // one that was admitted has shown that the list is in force
			return refused
		}
		select {
		case <-news:
		case <-grace.C:
			late = true
			grace.Reset(time.Second) // a connection may be lost meanwhile
		case <-ctx.Done():
			return s.unready(ctx, cmp.Or(missing, s.all[0]))
		}
	}
}

// unready is the error if ctx ends first.
func (s *Shards) unready(ctx context.Context, missing *ensemble) error {
	var why error
	s.under(func() { why = missing.err })
	why = cmp.Or(why, missing.s.Client().LastError(), errors.New("it waits for the others"))
	return fmt.Errorf("%w: %s: %w", errs.OfContext(ctx), errs.Quote(missing.servers), why)
}

// under calls f with mu.
func (s *Shards) under(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// tell wakes all that wait for news. mu is held.
func (s *Shards) tell() {
	close(s.news)
	s.news = make(chan struct{})
	for _, x := range s.all {
		if x.waits != nil {
			x.waits.Tell(others, 0)
		}
	}
}

// step is the next step on x, whose record was read.
func (s *Shards) step(x *ensemble, t terms) (step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.name != "" && x.name != t.Name {
		return step{}, errs.Misuse("%s is another ensemble than it was, or was taken for: its record names %s, not %s",
			errs.Quote(x.servers), errs.Quote(t.Name), errs.Quote(x.name))
	}
	for _, list := range [][]*ensemble{s.to, s.from} {
		for _, y := range list {
			if y != x && y.read && y.name == t.Name && slices.Contains(list, x) {
				return step{}, errs.Misuse("%s and %s lead to the same ensemble", errs.Quote(x.servers), errs.Quote(y.servers))
			}
		}
	}
	if before, there := s.seen[t.Name]; !there || before.Generation != t.Generation || before.Stage != t.Stage || !x.read {
		if x.read, s.seen[t.Name] = true, t; x.name == "" { // a name never changes, so For reads it without mu
			x.name = t.Name
		}
		s.resolve()
		s.tell()
	}
	if s.wish == nil {
		return step{}, nil
	}
	return s.wish.at(t, s.seen), nil
}

// resolve sets wish once each ensemble has a name. mu is held.
func (s *Shards) resolve() {
	if s.wish == nil && !slices.ContainsFunc(s.all, func(x *ensemble) bool { return x.name == "" }) {
		s.wish = &wish{from: members(s.from), to: members(s.to)}
	}
}

func members(list []*ensemble) (all []member) {
	for _, x := range list {
		all = append(all, member{x.name, x.servers})
	}
	return all
}

// assume names the ensembles that are down, after lists that others have recorded: those of the same servers, and if all processes
// have one list, the only one that is then left. The first session there shows whether that is right, before any call. mu is held.
func (s *Shards) assume() {
	for _, t := range s.seen {
		s.match(s.to, t.To, false)
		s.match(s.to, t.From, false)
		s.match(s.from, t.From, false)
		s.match(s.from, t.To, false)
	}
	for _, t := range s.seen {
		if len(s.from) == 0 && t.Stage == opened {
			s.match(s.to, t.To, true)
		}
	}
	if s.wish == nil {
		if s.resolve(); s.wish != nil {
			s.tell()
		}
	}
}

// match names the ensembles of one list after a recorded list of the same ones. last is for one whose servers have changed.
func (s *Shards) match(own []*ensemble, recorded []member, last bool) {
	taken := func(m member) bool {
		return slices.ContainsFunc(s.all, func(x *ensemble) bool { return x.name == m.Name })
	}
	if len(own) != len(recorded) || slices.ContainsFunc(own, func(x *ensemble) bool { return x.name != "" && !has(recorded, x.name) }) {
		return
	}
	free := slices.DeleteFunc(slices.Clone(recorded), taken)
	names := make(map[*ensemble]string)
	for _, x := range own {
		if x.name != "" {
			continue
		}
		at := slices.IndexFunc(free, func(m member) bool { return m.Servers == x.servers })
		if last && len(free) == 1 {
			at = 0
		}
		if at < 0 {
			return
		}
		names[x] = free[at].Name
		free = slices.Delete(free, at, at+1)
	}
	for x, name := range names {
		x.name = name
	}
}

// For is the session with the ensemble of a path, by the new list of a process that moves. What other types than the mutex of
// [Shards.NewMutex] keep at a path does not move with it: see docs/scale.md.
func (s *Shards) For(path string) *zksync.Session {
	return (*zksync.Session)(s.made().of(s.wish.to, path).s)
}

// All are the connect strings and the sessions, those of the old list of a process that moves after the others.
func (s *Shards) All() iter.Seq2[string, *zksync.Session] {
	s.made()
	return func(yield func(string, *zksync.Session) bool) {
		for _, x := range s.all {
			if !yield(x.servers, (*zksync.Session)(x.s)) {
				return
			}
		}
	}
}

// of is the ensemble of a path in a list: the one whose name and the path have the greatest hash. So an ensemble that is added
// takes names from all others, and one that is removed leaves them to all others; the rest stay.
func (s *Shards) of(list []member, path string) *ensemble {
	weight := func(m member) uint64 {
		sum := sha256.Sum256([]byte(m.Name + path))
		return binary.BigEndian.Uint64(sum[:])
	}
	first := slices.MaxFunc(list, func(a, b member) int { return cmp.Or(cmp.Compare(weight(a), weight(b)), cmp.Compare(a.Name, b.Name)) })
	return s.all[slices.IndexFunc(s.all, func(x *ensemble) bool { return x.name == first.Name })]
}

// NewMutex names a lock by the path of its directory. It is on the ensemble of the path. In a process that moves it is on both, the
// old one and the new one, locked in that order, so [zksync.Leases] has two leases then. The tokens of two ensembles do not
// compare: see docs/scale.md.
func (s *Shards) NewMutex(path string, opts ...zksync.Option) *zksync.Multi {
	at := []*ensemble{s.made().of(s.wish.to, path)}
	if len(s.from) > 0 {
		if old := s.of(s.wish.from, path); old != at[0] {
			at = []*ensemble{old, at[0]}
		}
	}
	var all []*zksync.Mutex
	for _, x := range at {
		x.s.SetEnsemble(x.name)
		all = append(all, zksync.NewMutex((*zksync.Session)(x.s), path, opts...))
	}
	return zksync.MultiLockInOrder(all...)
}

// Close closes all sessions, as [zksync.Session.Close] does. A process that moves takes up to a second more, to leave the move where
// others can go on.
func (s *Shards) Close() error {
	if s.made().moves() && s.up() && s.ctx.Err() == nil {
		s.part()
	}
	return s.close()
}

// moves reports whether the process moves from another list.
func (s *Shards) moves() bool { return len(s.from) > 0 && !same(s.wish.from, s.wish.to) }

// up reports whether there is a connection with every ensemble.
func (s *Shards) up() bool {
	return !slices.ContainsFunc(s.all, func(x *ensemble) bool { return x.s.State() != session.Connected })
}

func (s *Shards) close() error {
	s.stop()
	failed := make([]error, len(s.all))
	var all sync.WaitGroup
	for i, x := range s.all {
		if x.s.Opened() {
			all.Go(func() { failed[i] = x.s.Close() })
		}
	}
	all.Wait()
	s.work.Wait()
	return errors.Join(failed...)
}
