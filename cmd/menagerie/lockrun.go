package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/zksync"
)

const (
	tokenEnv = "MENAGERIE_TOKEN"
	pathEnv  = "MENAGERIE_PATH"
)

// runLock is the whole of lock, and of what is like it: find CMD, get the lock, run CMD, release.
func (a *app) runLock(ctx context.Context, o lockOptions) error {
	// First of all: nobody should have to wait for a lock to learn of a typing error.
	program, err := child.Resolve(o.argv[0])
	if err != nil {
		return cannotRun(err)
	}
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
	s, err := a.connect(ctx, o.tryServers, zksync.WithName(filepath.Base(o.argv[0])))
	if err != nil {
		return a.notObtained(ctx, o, err)
	}
	defer goodbye(s)
	lease, err := a.acquire(ctx, s, o)
	if err != nil {
		return a.notObtained(ctx, o, err)
	}
	// From here on signals are CMD's.
	stopListening()
	if i, ok := interrupted(ctx); ok {
		return a.notObtained(ctx, o, i)
	}
	return a.hold(s, lease, o, program, signals)
}

// acquire waits for the lock. Servers that cannot be reached for o.tryServers end the wait.
func (a *app) acquire(ctx context.Context, s *zksync.Session, o lockOptions) (*zksync.Lease, error) {
	wait, try := o.forms(s, o.path)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.tryServers > 0 {
		go giveUpUnreachable(ctx, s, o.tryServers, cancel)
	}
	get := wait
	if o.try {
		get = try
	}
	lease, err := get(ctx)
	switch {
	case err == nil:
		return lease, nil
	case ctx.Err() != nil:
		return nil, a.contextError(context.Cause(ctx), o.tryServers, "")
	case errors.Is(err, zksync.ErrNotAcquired):
		return nil, exitWith(exitNotObtained, "%s is not free", o.path)
	}
	return nil, a.sessionError(err)
}

// giveUpUnreachable cancels when the session has been without a server for limit.
func giveUpUnreachable(ctx context.Context, s *zksync.Session, limit time.Duration, cancel context.CancelCauseFunc) {
	timer := time.AfterFunc(limit, func() { cancel(errUnreachable) })
	timer.Stop()
	defer timer.Stop()
	changes := s.Changes(ctx)
	down := s.State() != zksync.Connected
	if down {
		timer.Reset(limit)
	}
	for state := range changes {
		switch {
		case state == zksync.Connected:
			down = false
			timer.Stop()
		case !down: // Lost after Suspended does not start the time anew
			down = true
			timer.Reset(limit)
		}
	}
}

// notObtained picks the exit code when the wait is over without the lock.
func (a *app) notObtained(ctx context.Context, o lockOptions, err error) error {
	if i, ok := interrupted(ctx); ok {
		return exitWith(i.exitCode(), "%v while waiting for %s", i, o.path)
	}
	if errors.Is(context.Cause(ctx), errNotInTime) {
		return exitWith(exitNotObtained, "%s on %s was not obtained within %v", o.path, a.target(), o.wait)
	}
	return err
}

// hold runs CMD and returns its exit code as an error, or that of a loss.
func (a *app) hold(s *zksync.Session, lease *zksync.Lease, o lockOptions, program string, signals <-chan os.Signal) error {
	session, timeout := s.ID(), s.Timeout() // neither is known any more after a loss
	env := append(os.Environ(), tokenEnv+"="+lease.Token().String(), pathEnv+"="+o.path)
	c, err := child.Start(program, o.argv, env, lease.Valid)
	if err != nil {
		_ = lease.Unlock()
		return cannotRun(err)
	}
	if a.attend(c, lease, signals, o.grace) {
		return exitWith(exitLost, "lost %s on %s while %s was running: %s",
			o.path, a.target(), o.argv[0], reasonOfLoss(s, session, timeout))
	}
	_ = lease.Unlock() // fails only if the lease is lost at this very instant, and CMD has ended
	if code := c.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// attend passes signals on until CMD has ended, and ends CMD when the lease is lost, which
// it reports. A lease that is still valid when CMD has ended was valid all the time that
// CMD ran.
func (a *app) attend(c *child.Child, lease *zksync.Lease, signals <-chan os.Signal, grace time.Duration) (lost bool) {
	for {
		select {
		case sig := <-signals:
			c.Signal(sig)
		case <-lease.Done():
			c.Terminate(grace)
			return true
		case <-c.Done():
			return !lease.Valid()
		}
	}
}

// reasonOfLoss says what a lease that was granted in the given ZooKeeper session died of,
// as far as can be seen from here.
func reasonOfLoss(s *zksync.Session, session int64, timeout time.Duration) string {
	if s.State() == zksync.Connected && s.ID() == session {
		return "somebody removed its node"
	}
	return fmt.Sprintf("the servers did not answer within the session timeout of %v", timeout)
}

func cannotRun(err error) error {
	if errors.Is(err, child.ErrNotFound) {
		return exitWith(exitNotFound, "%v", err)
	}
	return exitWith(exitCannotRun, "%v", err)
}

// interruptible returns a context that the next signal cancels, and a function that ends
// this, after which signals are left alone. The function may be called twice.
func interruptible(parent context.Context, signals <-chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case sig := <-signals:
			cancel(&interruption{signal: sig})
		case <-stop:
		}
	}()
	var once bool
	return ctx, func() {
		if !once {
			once = true
			close(stop)
		}
		<-stopped
	}
}
