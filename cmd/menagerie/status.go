package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/zksync"
)

func (a *app) statusCommand() *cobra.Command {
	var asJSON bool
	var check string
	cmd := &cobra.Command{
		Use:   "status [--acl-check PATH] [--json]",
		Short: "Show the servers, and what is wrong with them",
		Long: `Asks each of the servers, all at the same time, and shows which of them serve, what they are, and
each thing that is wrong, with its fix: no quorum, a server that is down or behind, a version
with a fault that locks suffer from, a --timeout that the servers do not grant.

It uses the four-letter word srvr, which servers allow by default, and one session at each server.
If the servers allow cons and dump, too, it knows which clients are still heard of.

--acl-check also reads the access lists of PATH, of its parents, and of the nodes below it, and
names what anybody may change.

Exit codes:
    0  a quorum serves, whatever else is wrong
    1  no server serves, or another failure
    2  wrong command line
  130  interrupted (143 by SIGTERM, 129 by SIGHUP)

It ends after --connect-timeout at the latest, and a moment.`,
		Example: `  menagerie status
  menagerie status --acl-check /locks/nightly
  menagerie status --json | jq -r '.findings[].text'`,
		Args: noArguments,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("acl-check") && check != "/" {
			if err := checkPath(check); err != nil {
				return err
			}
		}
		return a.status(cmd.Context(), check, asJSON)
	}
	cmd.Flags().StringVar(&check, "acl-check", "", "report what anybody may change at `PATH`, its parents, and below it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}

func (a *app) status(ctx context.Context, check string, asJSON bool) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	o, err := a.looksAt()
	if err != nil {
		return err
	}
	o.Range, o.Timeout = true, a.timeout.value()
	var open []servers.Finding
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		if check != "" {
			open = a.openPaths(ctx, check)
		}
	}()
	r := translated(servers.Look(ctx, o))
	<-checked
	if ctx.Err() != nil {
		return a.contextError(context.Cause(ctx), o.Limit, nil)
	}
	r.Add(open...)
	if r.Ensemble.Quorum {
		r.Add(a.missingChroot(ctx)...)
	}
	if err := a.printStatus(r, asJSON); err != nil {
		return err
	}
	if !r.Ensemble.Quorum {
		return &exitError{code: exitFailure} // the findings say so
	}
	return nil
}

// looksAt are the options of a look at the servers of this connection.
func (a *app) looksAt() (o servers.Options, err error) {
	o.Servers, _, err = session.ParseConnectString(a.target())
	if err != nil {
		return o, a.sessionError(err)
	}
	o.Limit, o.TLS = a.connectTimeout.value(), a.tlsConfig
	if a.tlsFiles != nil {
		if o.TLS, err = a.tlsFiles.Config(a.tlsConfig); o.TLS == nil {
			return o, failure("%v", err)
		}
	}
	return o, nil
}

// missingChroot is a note if the chroot does not exist. It creates nothing: its session has no chroot.
func (a *app) missingChroot(ctx context.Context) (all []servers.Finding) {
	hosts, chroot, err := session.ParseConnectString(a.target())
	if err != nil || chroot == "" {
		return nil
	}
	ctx, cancel := within(ctx, a.connectTimeout.value())
	defer cancel()
	s, err := zksync.Connect(ctx, strings.Join(hosts, ","), append(a.options(), zksync.WithLogger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		return nil
	}
	defer func() { _ = (*session.Session)(s).CloseWithin(closing) }()
	_ = tree.Looking(ctx, s, func(ctx context.Context, l *tree.Look) error {
		if n, err := l.At(ctx, chroot); n != nil || err != nil {
			return err // not known: the findings say that there is more wrong
		}
		all = []servers.Finding{{Severity: servers.Note, Fix: "correct it if it is misspelt",
			Text: "the chroot " + tree.Clean(chroot) + " does not exist: the first session creates it, or --existing-chroot refuses it"}}
		return nil
	})
	return all
}

// translated has the words of the command.
func translated(r *servers.Report) *servers.Report {
	for i, s := range r.Servers {
		r.Servers[i].Error = inWords(s.Error)
	}
	for i, f := range r.Findings {
		r.Findings[i].Text, r.Findings[i].Fix = inWords(f.Text), inWords(f.Fix)
	}
	return r
}

func (a *app) printStatus(r *servers.Report, asJSON bool) error {
	if asJSON {
		return printJSON(a.stdout, r)
	}
	var w bytes.Buffer
	writeServers(&w, r.Servers)
	writeEnsemble(&w, r)
	for _, f := range r.Findings {
		writeWrapped(&w, f.Severity+": "+f.Text, "  ")
		writeWrapped(&w, "  fix: "+f.Fix, "    ")
	}
	if len(r.Findings) == 0 {
		w.WriteString("all is well\n")
	}
	_, err := a.stdout.Write(w.Bytes())
	return outputError(err)
}

func writeServers(w *bytes.Buffer, all []servers.Server) {
	rows := [][]string{{"ADDRESS", "MODE", "VERSION", "LATENCY", "CLIENTS", "ZXID"}}
	for _, s := range all {
		mode, latency, clients := cmp.Or(s.Mode, "-"), "-", "-"
		switch {
		case !s.Reachable:
			mode = "down"
		case !s.Serves:
			mode = "not serving"
		}
		if s.LatencyMS >= 0 {
			latency = strconv.FormatFloat(s.LatencyMS, 'f', 1, 64) + " ms"
		}
		if s.Connections >= 0 {
			clients = strconv.Itoa(s.Connections)
		}
		rows = append(rows, []string{s.Addr, mode, tree.Dash(s.Version), latency, clients, tree.Dash(s.Zxid)})
	}
	writeTable(w, rows, maxColumns, flexible{0, narrowest, cutMiddle})
}

func writeEnsemble(w *bytes.Buffer, r *servers.Report) {
	e := r.Ensemble
	parts := []string{fmt.Sprintf("%d of %d serve", e.Serving, len(r.Servers))}
	if !e.Quorum {
		parts = []string{"no quorum"}
	}
	if e.TimeoutMax > 0 {
		ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
		parts = append(parts, fmt.Sprintf("session timeouts %v to %v", ms(e.TimeoutMin), ms(e.TimeoutMax)))
	}
	for _, x := range []struct {
		has  bool
		name string
	}{{e.Containers, "containers"}, {e.TTL, "TTL"}, {e.PersistentWatches, "persistent watches"}} {
		if x.has {
			parts = append(parts, x.name)
		}
	}
	writeWrapped(w, "ensemble: "+strings.Join(parts, ", "), "  ")
}

// writeWrapped breaks a line between words. What is longer than a line is not broken: it may be part of a command.
func writeWrapped(w *bytes.Buffer, text, indent string) {
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			w.WriteString(lead)
			column = len(lead)
		case column+1+n > maxColumns:
			w.WriteString("\n" + indent)
			column = len(indent)
		default:
			w.WriteByte(' ')
			column++
		}
		w.WriteString(word)
		column += n
	}
	w.WriteByte('\n')
}
