package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/layout"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) queueDeadCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "dead PATH [--json]",
		Short: "List the dead letters of a queue",
		Long: `Prints the elements of the queue PATH that "queue work", or Work of package zkqueue, has given up: the
ID, the number of attempts, when the element was put and when it was given up (by the servers' clock),
the last error, and the element. They are in the order in which they were put. "queue redrive" puts
them into the queue again. No command removes them; a program can, with Dead of package zkqueue.

With --json it prints a list of objects with id, data, err, attempts, enqueued and died. data is text, or
base64 if it is no UTF-8, and then base64 is true.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  they were printed, also if there are none
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or PATH is no queue
    4  PATH does not exist`,
		Example: `  menagerie queue dead /queues/mails
  menagerie queue dead /queues/mails --json | jq -r '.[].err'`,
		Args: onePath,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.onQueue(cmd, args[0], "queue dead", func(ctx context.Context, q *zkqueue.Queue[[]byte]) error {
			var all []zkqueue.DeadElement
			for d, err := range q.Dead().All(ctx) {
				if err != nil {
					return err
				}
				all = append(all, d)
			}
			if asJSON {
				return printJSON(a.stdout, lettersOf(all))
			}
			return a.printLetters(all)
		})
	}
	return cmd
}

// letter is a dead letter, for programs.
type letter struct {
	ID       string    `json:"id"`
	Data     string    `json:"data"`
	Base64   bool      `json:"base64,omitempty"` // of Data
	Err      string    `json:"err"`
	Attempts int       `json:"attempts"`
	Enqueued time.Time `json:"enqueued"`
	Died     time.Time `json:"died"`
}

func lettersOf(all []zkqueue.DeadElement) []letter {
	list := make([]letter, len(all))
	for i, d := range all {
		list[i] = letter{ID: d.ID, Data: string(d.Data), Err: d.Err, Attempts: d.Attempts, Enqueued: d.Enqueued.UTC(), Died: d.Died.UTC()}
		if !utf8.Valid(d.Data) {
			list[i].Data, list[i].Base64 = base64.StdEncoding.EncodeToString(d.Data), true
		}
	}
	return list
}

// printLetters prints dead letters for people, a line for each.
func (a *app) printLetters(all []zkqueue.DeadElement) error {
	if len(all) == 0 {
		return nil
	}
	rows := [][]string{{"ID", "ATTEMPTS", "ENQUEUED", "DIED", "ERROR", "ELEMENT"}}
	for _, d := range all {
		rows = append(rows, []string{
			d.ID, strconv.Itoa(d.Attempts), d.Enqueued.UTC().Format(time.RFC3339), d.Died.UTC().Format(time.RFC3339), shorten(oneLine(d.Err)), shorten(oneLine(string(d.Data))),
		})
	}
	var text bytes.Buffer
	writeTable(&text, rows, 0)
	_, err := a.stdout.Write(text.Bytes())
	return outputError(err)
}

func (a *app) queueRedriveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "redrive PATH [ID]",
		Short: "Put dead letters into their queue again",
		Long: `Puts the dead letter ID, or without ID all of them, at the end of the queue PATH, and prints how many.
Each is a new element with another ID, and its next attempt is the first. A bounded queue must have room:
the command waits for it.

Without --servers the command uses ` + defaultServers + `.

Exit codes:
    0  they are in the queue again; without ID also if there were none
    1  servers unreachable for --connect-timeout, or another failure
    2  wrong command line, or PATH is no queue
    4  PATH or ID does not exist
  130  interrupted while waiting (143 by SIGTERM, 129 by SIGHUP)`,
		Example: `  menagerie queue redrive /queues/mails
  menagerie queue redrive /queues/mails 1f2e3d4c.0000000007`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usage("want PATH and ID, found %q too", shorten(args[2]))
			}
			return onePath(cmd, args[:min(len(args), 1)])
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.onQueue(cmd, args[0], "queue redrive", func(ctx context.Context, q *zkqueue.Queue[[]byte]) error {
			if len(args) == 2 {
				err := q.Dead().Redrive(ctx, args[1])
				if errors.Is(err, zksync.ErrNotFound) {
					return exitWith(exitNoSuchPath, "%s has no dead letter %s", args[0], shorten(args[1]))
				}
				return a.redriven(args[0], 1, err)
			}
			n := 0
			for d, err := range q.Dead().All(ctx) {
				if err == nil {
					err = q.Dead().Redrive(ctx, d.ID)
				}
				switch {
				case err == nil:
					n++
				case !errors.Is(err, zksync.ErrNotFound): // else another process was quicker
					return a.redriven(args[0], n, err)
				}
			}
			return a.redriven(args[0], n, nil)
		})
	}
	return cmd
}

// redriven prints how many dead letters are elements again, also if an error kept others from it.
func (a *app) redriven(path string, n int, err error) error {
	if err != nil && n == 0 {
		return err
	}
	_, wrong := fmt.Fprintf(a.stdout, "%s put into %s again\n", wording.Plural(int64(n), "element"), path)
	return errors.Join(err, outputError(wrong))
}

// onQueue calls f with a queue that exists. As its state says, f need not be told the capacity.
func (a *app) onQueue(cmd *cobra.Command, path, name string, f func(context.Context, *zkqueue.Queue[[]byte]) error) error {
	o := queueOptions{lockOptions: lockOptions{path: path, patience: a.patience(cmd, 0)}}
	return a.waiting(cmd.Context(), o.lockOptions, name, func(w *vigil) error {
		if err := refuseOther(w, path); err != nil {
			return err
		}
		err := tree.Looking(w.ctx, w.s, func(ctx context.Context, l *tree.Look) error {
			n, err := l.At(ctx, path+"/"+layout.Queue)
			if err == nil && n == nil {
				err = exitWith(exitNoSuchPath, "%s does not exist: nothing was ever put there", path)
			}
			return err
		})
		if err != nil {
			return err
		}
		st, err := o.queue(w.s).State(w.ctx)
		if err != nil {
			return err
		}
		o.capacity = int(st.Capacity)
		return f(w.ctx, o.queue(w.s))
	})
}
