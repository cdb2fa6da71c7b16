package main

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) deadlocksCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "deadlocks [PATH] [--json]",
		Short: "Show who waits for whom, and deadlocks",
		Long: `Shows who waits for whom at the locks, read-write locks, semaphores and elections below PATH, deadlocks
first. Without PATH it looks at everything (below the chroot).

An owner is what says so: a "menagerie lock" inside the CMD of another one is the same owner
(MENAGERIE_TOKEN), and so are the locks of a Go program with zksync.WithDeadlockDetection that one
goroutine takes. Of all others a session counts as one owner, and the deadlock is reported as probable:
a program may hold and wait in goroutines or threads that do not depend on each other. Those of one
session that queue for the same lock are no deadlock.

The entries are read one after the other. A deadlock is reported if two readings show it.

Exit codes:
    0  no deadlock
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line
    5  a deadlock was found`,
		Example: `  menagerie lock /d/a -- sleep 1 & menagerie lock /d/a -- sleep 1 &
  menagerie deadlocks
  menagerie deadlocks /d --json | jq '.cycles[].text'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := rootOf(cmd, args)
			if err != nil {
				return err
			}
			return a.deadlocks(cmd, root, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an object with the cycles and the waits")
	return cmd
}

// rootOf is the optional PATH of a command that looks at everything below it.
func rootOf(cmd *cobra.Command, args []string) (string, error) {
	if len(args) == 0 || len(args) == 1 && args[0] == "/" {
		return "/", nil
	}
	return args[0], onePath(cmd, args)
}

// exitDeadlock is the exit code of deadlocks if it has found one.
const exitDeadlock = 5

func (a *app) deadlocks(cmd *cobra.Command, root string, asJSON bool) error {
	v, err := a.surveyOnce(cmd, root)
	if err != nil {
		return err
	}
	waits := waitsOf(v)
	if asJSON {
		err = printJSON(a.stdout, struct {
			Cycles  []survey.Cycle `json:"cycles"`
			Waits   []waitRow      `json:"waits"`
			Denied  []string       `json:"denied,omitempty"`
			Left    int            `json:"left,omitempty"`
			Missing bool           `json:"missing,omitempty"`
		}{v.Cycles, waits, v.Denied, v.Left, v.Missing})
	} else {
		var w bytes.Buffer
		writeDeadlocks(&w, v, waits, a.copied(), time.Now())
		_, err = a.stdout.Write(w.Bytes())
		err = outputError(err)
	}
	if err == nil && len(v.Cycles) > 0 {
		return &exitError{code: exitDeadlock}
	}
	return err
}

// waitRow is one wait in the output of deadlocks.
type waitRow struct {
	Path string `json:"path"`
	*survey.Entry
}

// waitsOf are the waits of queues. Those that are stuck come first, and then the longest.
func waitsOf(v *survey.View) []waitRow {
	waits := []waitRow{}
	for _, stuck := range []bool{true, false} {
		for _, o := range v.Objects {
			for _, e := range o.Entries {
				if o.Queue && e.State == zksync.Waiting && e.Stuck == stuck {
					waits = append(waits, waitRow{o.Path, e})
				}
			}
		}
	}
	return waits
}

func writeDeadlocks(w *bytes.Buffer, v *survey.View, waits []waitRow, flags []string, now time.Time) {
	if v.Missing {
		fmt.Fprintln(w, errs.ShowPath(v.Root)+" does not exist")
	}
	for _, c := range v.Cycles {
		word := "deadlock"
		if !c.Certain {
			word = "probably a deadlock, as a session counts as one owner"
		}
		fmt.Fprintln(w, word+":")
		for _, line := range c.Lines {
			fmt.Fprintln(w, "  "+line)
		}
		newest := c.Steps[0]
		command := tree.Command(append([]string{"menagerie", "release", newest.Path, "--node", path.Base(newest.Blocker.Node)}, flags...)...)
		fmt.Fprintln(w, "  to end it, end one of these processes, or take a hold from it: "+cmp.Or(command, "menagerie release"))
	}
	switch {
	case len(v.Cycles) == 0 && (len(v.Denied) > 0 || v.Left > 0):
		fmt.Fprintln(w, "no deadlock, as far as it was read")
	case len(v.Cycles) == 0 && len(waits) == 0:
		fmt.Fprintln(w, "no deadlock, and nothing waits")
	case len(v.Cycles) == 0:
		fmt.Fprintln(w, "no deadlock")
	}
	if len(waits) > 0 {
		rows := [][]string{{"WAITER", "WAITS FOR", "BEHIND", "SINCE", "TOKEN", "STUCK"}}
		for _, r := range waits {
			stuck := ""
			if r.Stuck {
				stuck = "yes"
			}
			rows = append(rows, []string{r.Owned(), r.Path, tree.Dash(r.Behind), age(r.Time(), now, false), tree.Dash(r.Token), stuck})
		}
		writeTable(w, rows, maxColumns, flexible{1, narrowest, cutMiddle}, flexible{0, narrowest, cut}, flexible{2, narrowest, cut})
	}
	writeLimits(w, v)
}

// writeLimits says what a view does not show.
func writeLimits(w *bytes.Buffer, v *survey.View) {
	if n := len(v.Denied); n > 0 {
		fmt.Fprintf(w, "not read, because they are not readable with these credentials (see --auth): %s\n", cut(strings.Join(v.Denied, ", "), maxColumns))
	}
	if v.Left > 0 {
		fmt.Fprintf(w, "not shown: %s more; name a PATH further down\n", wording.Plural(int64(v.Left), "path"))
	}
}
