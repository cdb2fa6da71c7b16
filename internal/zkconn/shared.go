package zkconn

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// shared is what all sessions of a client share: the configuration, and what is known of the servers.
type shared struct {
	cfg      Config
	dials    dialLog
	pace     dialPace
	most     maxBuffer
	unknown  unknownOps
	identity identity
	crew

	granted    atomic.Int64 // the session timeout that the servers granted last, a time.Duration; 0 before that
	newest     atomic.Int64 // the greatest zxid that an answer in any session has had
	madeChroot atomic.Bool  // it has been logged

	running context.Context // ends when Stop begins
	halt    context.CancelFunc
	closing context.Context // ends when nothing may be tried any more to end sessions
	giveUp  context.CancelFunc
}

// timeout is the session timeout that the servers granted last or, before that, the one to ask for.
func (s *shared) timeout() time.Duration {
	return cmp.Or(time.Duration(s.granted.Load()), s.cfg.Timeout)
}

// local is the path as the user of the client knows it, below the chroot.
func (s *shared) local(path string) string {
	return cmp.Or(strings.TrimPrefix(path, s.cfg.Chroot), "/")
}

// LastError is why the newest attempt at each server failed, and of a server that has not answered
// yet, how long the attempt has waited for what. It is nil before the first attempt.
func (s *shared) LastError() error { return s.dials.lastError() }

// crew are the goroutines that Stop waits for.
type crew struct {
	runs    sync.WaitGroup
	hiring  sync.Mutex
	closed  bool          // Go runs nothing any more
	lasting int           // how much must be done before the session may be ended: see Lasting
	settled chan struct{} // closed when nothing is lasting any more
}

// Go runs f in a goroutine for which Stop waits. f must end when the epoch ends.
// Once Stop has begun, Go does not run f and reports false. It does not block.
func (c *crew) Go(f func()) bool {
	c.hiring.Lock()
	defer c.hiring.Unlock()
	if !c.closed {
		c.runs.Go(f)
	}
	return !c.closed
}

// Lasting says that the caller is about to make something that does not end with the session, and that it would have to remove
// while the session lives. Stop does not end the session before over is called. Once Stop has begun to end the
// session, ok is false, and the caller must not make it.
func (c *crew) Lasting() (over func(), ok bool) {
	c.hiring.Lock()
	defer c.hiring.Unlock()
	if c.closed {
		return func() {}, false
	}
	if c.lasting++; c.lasting == 1 {
		c.settled = make(chan struct{})
	}
	return sync.OnceFunc(func() {
		c.hiring.Lock()
		defer c.hiring.Unlock()
		if c.lasting--; c.lasting == 0 {
			close(c.settled)
		}
	}), true
}

// dismiss lets Go run nothing any more, once nothing is lasting, or late has passed.
func (c *crew) dismiss(late time.Time) {
	c.hiring.Lock()
	defer c.hiring.Unlock()
	for c.lasting > 0 && time.Now().Before(late) {
		settled := c.settled
		c.hiring.Unlock()
		sleep(time.Until(late), settled)
		c.hiring.Lock()
	}
	c.closed = true
}

// A chroot that is misspelt looks like one that is new. Locks in it exclude no other process. So it is a warning when
// the client makes the chroot, and with Config.ExistingChroot the client does not make it.

// creating returns what to call when the servers have applied these operations. If one of them creates the chroot, and
// that must not be made, it returns an error.
func (s *shared) creating(ops ...any) (applied func(), err error) {
	switch {
	case !slices.ContainsFunc(ops, func(op any) bool { r, ok := op.(*zk.CreateRequest); return ok && r.Path == s.cfg.Chroot }):
		return func() {}, nil
	case s.cfg.ExistingChroot:
		return nil, s.missingChroot()
	}
	return s.logChroot, nil
}

// missingChroot is the error of a call that needs a chroot that is not there, and must not be made.
func (s *shared) missingChroot() error {
	chroot := errs.ShowPath(s.cfg.Chroot)
	return errs.Misuse("the chroot %s does not exist, and WithExistingChroot is given: correct the connect string, or create %[1]s", chroot)
}

// logChroot logs that the servers have created the chroot, once. The caller is the goroutine that reads the
// connection, and the logger may be slow.
func (s *shared) logChroot() {
	if !s.madeChroot.Swap(true) {
		s.Go(func() {
			s.cfg.Log.Once("chroot", "").Warn("created the chroot, which did not exist", "path", s.cfg.Chroot)
		})
	}
}
