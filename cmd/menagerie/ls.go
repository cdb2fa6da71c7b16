package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) lsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls PATH",
		Short: "Show who holds a lock and who waits for it",
		Long: `Shows the holders and waiters of a lock in the order of their turn.

It works for every kind of queue: mutexes, read and write locks, semaphores, also those of
Curator, kazoo and go-zookeeper. What it shows may be out of date by the time it is printed.
A path that does not exist is a lock that nobody holds; the queue of a "once" is PATH/lock.
Without --servers it looks at ` + defaultServers + `.`,
		Example: `  menagerie ls /locks/nightly
  menagerie ls /locks/nightly --json | jq '.[0].owner.host'
  menagerie --servers zk1:2181,zk2:2181/app ls /locks/nightly`,
		Args: onePath,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.list(cmd, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of objects")
	return cmd
}

func onePath(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usage("PATH is missing, such as /locks/nightly")
	case 1:
		return checkPath(args[0])
	}
	return usage("want one PATH, found %q too", args[1])
}

func (a *app) list(cmd *cobra.Command, path string, asJSON bool) error {
	ctx, stop := signalContext(cmd.Context())
	defer stop()
	s, err := a.connect(ctx, a.connectTimeout.value())
	if err != nil {
		return err
	}
	defer goodbye(s)
	bounded, cancel := context.WithTimeoutCause(ctx, a.connectTimeout.value(), errUnreachable)
	defer cancel()
	contenders, err := zksync.Contenders(bounded, s, path)
	if err != nil {
		if bounded.Err() != nil {
			return a.contextError(context.Cause(bounded), a.connectTimeout.value(), nil)
		}
		return a.sessionError(err)
	}
	if asJSON {
		return printJSON(a.stdout, contenderRows(path, contenders))
	}
	return printContenders(a.stdout, path, contenderRows(path, contenders), time.Now())
}

// contenderRow is one entry of ls --json. Its names are part of the interface.
type contenderRow struct {
	Position int             `json:"position"`
	Kind     zksync.Kind     `json:"kind"`
	State    zksync.Standing `json:"state"`
	Owner    ownerRow        `json:"owner"`
	Since    string          `json:"since"`
	Session  string          `json:"session"`
	Token    string          `json:"token"`
	Node     string          `json:"node"`

	since time.Time
}

type ownerRow struct {
	Host string `json:"host"`
	PID  int    `json:"pid"`
	Name string `json:"name"`
}

// contenderRows is never nil, so that an empty queue is [] in JSON.
func contenderRows(path string, contenders []zksync.Contender) []contenderRow {
	rows := make([]contenderRow, 0, len(contenders))
	for _, c := range contenders {
		rows = append(rows, contenderRow{
			Position: c.Position,
			Kind:     c.Kind,
			State:    c.State,
			Owner:    ownerRow{Host: c.Owner.Host, PID: c.Owner.PID, Name: c.Owner.Name},
			Since:    timestamp(c.Since),
			Session:  fmt.Sprintf("0x%x", uint64(c.Session)),
			Token:    tokenText(c.Token),
			Node:     fullNode(path, c.Node),
			since:    c.Since,
		})
	}
	return rows
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339)
}

func tokenText(t zksync.Token) string {
	if t.IsZero() {
		return ""
	}
	return t.String()
}

func fullNode(path, node string) string {
	if strings.HasPrefix(node, "/") {
		return node
	}
	return path + "/" + node
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return failure("cannot write the output: %v", err)
	}
	return nil
}

func printContenders(w io.Writer, path string, rows []contenderRow, now time.Time) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintf(w, "nobody holds or waits for %s\n", path)
		return outputError(err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "POS\tKIND\tSTATE\tOWNER\tSINCE\tSESSION\tTOKEN\tNODE")
	for _, r := range rows {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			r.Position, r.Kind, r.State, r.Owner, age(r.since, now), r.Session, dash(r.Token), r.Node)
	}
	return outputError(t.Flush())
}

// String is the owner for people: name, then where it runs. zksync has cleaned both of
// what could move the cursor of a terminal.
func (o ownerRow) String() string {
	var parts []string
	if o.Name != "" {
		parts = append(parts, o.Name)
	}
	if o.Host != "" || o.PID != 0 {
		parts = append(parts, fmt.Sprintf("%s:%d", o.Host, o.PID))
	}
	return dash(strings.Join(parts, "@"))
}

// age is a time stamp with how long ago that is.
func age(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%s (%v)", t.Format(time.RFC3339), now.Sub(t).Round(time.Second))
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func outputError(err error) error {
	if err != nil {
		return failure("cannot write the output: %v", err)
	}
	return nil
}
