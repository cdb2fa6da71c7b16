package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// endSignals are the signals that ask a command to end.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// signalContext returns a context that the first of the end signals cancels, with an
// interruption as its cause. The next one ends the process, as if nobody listened. A signal that was
// ignored when the process started (nohup) stays ignored.
func signalContext(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	notify(signals, endSignals...)
	stopped := make(chan struct{})
	go func() {
		select {
		case sig := <-signals:
			signal.Stop(signals)
			cancel(&interruption{signal: sig})
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel(nil)
	}
}

// interruptible returns a context that the next signal cancels, and a function that ends
// this. After it signals stay in the channel. The function may be called twice. If a signal came, the next one
// ends the process.
func interruptible(parent context.Context, signals chan os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case sig := <-signals:
			signal.Stop(signals)
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

// notify is signal.Notify without the signals that are ignored.
func notify(c chan<- os.Signal, wanted ...os.Signal) {
	for _, sig := range wanted {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}
