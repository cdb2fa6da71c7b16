package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zkonce"
	"github.com/go-menagerie/menagerie/zksync"
)

// runOnce is the whole of once: find CMD, wait for the turn, run CMD unless it was done.
func (a *app) runOnce(ctx context.Context, o lockOptions) error {
	program, err := child.Resolve(o.argv[0])
	if err != nil {
		return cannotRun(err)
	}
	return a.waiting(ctx, o, filepath.Base(o.argv[0]), func(w *vigil) error {
		once := zkonce.New(w.s, o.path)
		do := once.DoContext
		if o.try {
			do = once.TryDoContext
		}
		ran := false
		kept, err := do(w.ctx, func(ctx context.Context) ([]byte, error) {
			if err := w.end(); err != nil {
				return nil, err
			}
			ran = true
			if err := a.runUnder(w.s, zksync.LeaseFrom(ctx), o, program, w.signals); err != nil {
				return nil, err
			}
			return newOnceRecord(o.argv), nil
		})
		var coded *exitError
		switch {
		case errors.As(err, &coded):
			return err
		case ran && errors.Is(err, zksync.ErrLost):
			return exitWith(exitLost, "lost %s on %s before it could be recorded that %s has succeeded", o.path, a.target(), o.argv[0])
		case ran && err != nil:
			return failure("%s has succeeded, but that could not be recorded: %s", o.argv[0], forPeople(err))
		case err == nil && !ran:
			fmt.Fprintf(a.stderr, "menagerie: %s\n", oneLine(wasDone(o.path, kept)))
		case errors.Is(err, zksync.ErrNotAcquired):
			return exitWith(exitNotObtained, "somebody else is running %s%s", o.path, a.heldNow(w.s, o.path, time.Now().Add(time.Second)))
		}
		return err
	})
}

// onceReset forgets that something was done.
func (a *app) onceReset(cmd *cobra.Command, args []string, o lockOptions) error {
	if err := onePath(cmd, args); err != nil {
		if len(args) > 1 {
			return usage("--reset takes no CMD, found %q", shorten(args[1]))
		}
		return err
	}
	if o.try {
		return usage("--reset and --try exclude each other: --reset waits while one runs, use --wait")
	}
	o.path = args[0]
	o.patience = a.patience(cmd, o.wait)
	return a.waiting(cmd.Context(), o, "once", func(w *vigil) error {
		return zkonce.New(w.s, o.path).Reset(w.ctx)
	})
}

func newOnceRecord(argv []string) []byte {
	host, _ := os.Hostname() // empty if unknown
	data, err := json.Marshal(wording.Run{
		Command: filepath.Base(argv[0]), Host: host, PID: os.Getpid(), At: time.Now().UTC().Truncate(time.Second),
	})
	if err != nil {
		return nil // cannot happen with strings, a number and a time; an empty result is correct, too
	}
	return data
}

// wasDone puts the kept result into words. This command or any other program may have written it.
func wasDone(path string, kept []byte) string {
	return path + " has been " + wording.Done(kept, time.Time{})
}
