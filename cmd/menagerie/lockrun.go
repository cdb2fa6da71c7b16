package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/internal/lease"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	tokenEnv = "MENAGERIE_TOKEN"
	pathEnv  = "MENAGERIE_PATH"
)

// waitGrace is how long after --wait the session ends at the latest: no more than that is spent on
// servers that do not answer.
const waitGrace = 200 * time.Millisecond

// runLock is the whole of lock and of the commands like it: find CMD, get the lock, run CMD, release.
func (a *app) runLock(ctx context.Context, o lockOptions) error {
	// First of all: a user should not wait for a lock to learn of a typing error.
	program, err := child.Resolve(o.argv[0])
	if err != nil {
		return cannotRun(err)
	}
	return a.waiting(ctx, o, filepath.Base(o.argv[0]), func(w *vigil) error {
		get, try := o.forms(w.s, o.path)
		if o.try {
			get = try
		}
		lease, err := get(w.ctx)
		switch {
		case errors.Is(err, zksync.ErrNotAcquired):
			return exitWith(exitNotObtained, "%s is not free%s", o.path, a.heldNow(w.s, o.path, time.Now().Add(time.Second)))
		case err != nil:
			return err
		}
		if err := w.end(); err != nil {
			_ = lease.Unlock()
			return err
		}
		return a.hold(w.s, lease, o, program, w.signals)
	})
}

// vigil is a wait on the servers that signals, --wait and unreachable servers end.
type vigil struct {
	s       *zksync.Session
	ctx     context.Context // of the wait; what begins after end outlives the wait
	signals chan os.Signal
	end     func() error
}

// waiting connects, with a name for people, and calls f, which waits under the vigil's context. It puts the outcome
// into words. When f has called end, the wait is over: nothing ends the context any more, and
// signals go to f. end fails if the wait has been ended before.
func (a *app) waiting(ctx context.Context, o lockOptions, name string, f func(*vigil) error) error {
	signals := make(chan os.Signal, 16)
	notify(signals, forwardedSignals...)
	defer signal.Stop(signals)
	ctx, stopListening := interruptible(ctx, signals)
	defer stopListening()
	if o.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, started.Add(o.wait), errNotInTime)
		defer cancel()
	}
	s, err := a.connect(ctx, o.patience, zksync.WithName(name))
	if err != nil {
		return a.notObtained(ctx, o, unreached(lastReason(err)), err)
	}
	leave := closeLimit
	defer func() { leaveWithin(s, leave) }()

	// A wait outlasts any outage. A try does not wait for an answer for ever.
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if o.try {
		bounded, cancel = within(ctx, o.patience)
	}
	defer cancel()
	w := &vigil{s: s, signals: signals}
	quiet := a.narrate(s, o)
	defer quiet()
	held, forget := a.whoHolds(s, o)
	defer forget()
	lasting, finish := context.WithCancelCause(context.WithoutCancel(ctx))
	defer finish(nil)
	ended := context.AfterFunc(bounded, func() { finish(context.Cause(bounded)) })
	defer ended()
	w.ctx = lasting
	w.end = func() error {
		stopListening() // from here on signals are f's
		quiet()
		forget()
		if !ended() {
			return context.Cause(bounded)
		}
		return nil
	}
	err = f(w)
	a.hurried(signals)
	var coded *exitError
	switch {
	case err == nil || errors.As(err, &coded):
		return err
	case errors.Is(context.Cause(bounded), errNotInTime):
		why := unreached(nil)
		if s.State() == zksync.Connected {
			why = <-held
		}
		leave = max(time.Until(started.Add(o.wait+waitGrace)), time.Millisecond)
		return a.notObtained(ctx, o, why, nil)
	case bounded.Err() != nil:
		return a.notObtained(ctx, o, "", a.contextError(context.Cause(bounded), o.patience, nil))
	}
	return a.sessionError(err)
}

// leaveWithin ends the session within d. A session that cannot be ended then expires. On a busy machine the client library may need
// a second more to end without a connection: this process does not wait for that, because it ends now.
func leaveWithin(s *zksync.Session, d time.Duration) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = (*session.Session)(s).CloseWithin(d)
	}()
	select {
	case <-left:
	case <-time.After(d + sightLimit):
	}
}

// hurryLimit is how long a release that is under way may last after a signal. It takes two round trips.
const hurryLimit = 750 * time.Millisecond

// hurried has a signal cut the end of this process short, which lasts up to three seconds if the servers are silent.
// The first one may be for CMD, which has ended meanwhile (service managers send it to all processes),
// so what is under way gets a moment, in which servers far away answer, too. If that is not enough, or another signal
// comes, the session ends by its timeout. Only the first call does something.
func (a *app) hurried(signals <-chan os.Signal) {
	a.hurry.Do(func() {
		go func() { // as long as the process
			i := &interruption{signal: <-signals}
			select {
			case <-signals:
			case <-time.After(hurryLimit):
			}
			end(report(a.stderr, nil, exitWith(i.exitCode(), "%v while ending the session: what it held is free after the session timeout", i)), a.stderr)
		}()
	})
}

// unreached says why the holder is unknown.
func unreached(why error) string {
	text := ", because no server could be reached" + because(why)
	if nobodyThere(why) {
		text += ": is a server running there?"
	}
	return text
}

// notObtained picks the exit code when the wait is over without the lock, and says why.
func (a *app) notObtained(ctx context.Context, o lockOptions, why string, err error) error {
	if i, ok := interrupted(ctx); ok {
		return exitWith(i.exitCode(), "%v while waiting for %s", i, o.path)
	}
	if errors.Is(context.Cause(ctx), errNotInTime) {
		return exitWith(exitNotObtained, "gave up waiting for %s on %s after %v%s", o.path, a.target(), o.wait, why)
	}
	return err
}

// hold runs CMD, releases the lock and returns CMD's exit code as an error, or that of a loss.
func (a *app) hold(s *zksync.Session, lease *zksync.Lease, o lockOptions, program string, signals <-chan os.Signal) error {
	err := a.runUnder(s, lease, o, program, signals)
	a.hurried(signals)
	_ = lease.Unlock() // fails only if the lease is lost: runUnder has noticed that, or it is too late to matter to CMD
	return err
}

// runUnder runs CMD while the lease holds.
func (a *app) runUnder(s *zksync.Session, lease *zksync.Lease, o lockOptions, program string, signals <-chan os.Signal) error {
	session := s.ID() // it is not known any more after a loss
	env := append(append(os.Environ(), tokenEnv+"="+lease.Token().String(), pathEnv+"="+o.path), o.env...)
	c, err := child.StartWith(cmp.Or(o.stdin, os.Stdin), program, o.argv, env, lease.Valid)
	if err != nil {
		return cannotRun(err)
	}
	if a.attend(c, lease.Done(), lease.Valid, signals, o.grace) {
		return exitWith(exitLost, "lost %s on %s while %s was running: %s",
			o.path, a.target(), o.argv[0], reasonOfLoss(s, session, lease))
	}
	if code := c.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// attend passes signals on until CMD has ended. It ends CMD when what is held is lost, and reports
// whether it was. What is valid after CMD has ended was valid all the time that CMD ran.
func (a *app) attend(c *child.Child, over <-chan struct{}, valid func() bool, signals <-chan os.Signal, grace time.Duration) (lost bool) {
	for {
		select {
		case sig := <-signals:
			c.Signal(sig)
		case <-over:
			c.Terminate(grace)
			return true
		case <-c.Done():
			return !valid()
		}
	}
}

// reasonLimit is how long a last line waits until it is known who removed a node.
const reasonLimit = 300 * time.Millisecond

// reasonOfLoss says why a lease was lost that was granted in the given ZooKeeper session,
// as far as this process can tell.
func reasonOfLoss(s *zksync.Session, session int64, l *zksync.Lease) string {
	if s.State() == zksync.Connected && s.ID() == session {
		why := (*lease.Lease)(l).ErrExplained(reasonLimit)
		if text, ok := strings.CutPrefix(forPeople(why), "lease lost: "); ok {
			return text
		}
		return "somebody removed its node"
	}
	<-l.Done() // it is not valid any more, so this is about to come
	return strings.TrimPrefix(forPeople(l.Err()), "lease lost: ")
}

func cannotRun(err error) error {
	if errors.Is(err, child.ErrNotFound) {
		return exitWith(exitNotFound, "%v", err)
	}
	return exitWith(exitCannotRun, "%v", err)
}
