package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/servers"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
	"github.com/go-menagerie/menagerie/zksync"
)

// survey is what an operator sees of everything below a path.
func (a *app) survey(s *zksync.Session, root string) *survey.Survey {
	return &survey.Survey{Session: s, Root: root, Servers: func(ctx context.Context) *servers.Report {
		return a.inspect(ctx, servers.Options{Limit: inspectLimit, Timeout: a.timeout.value()})
	}}
}

const (
	// inspectLimit bounds a look at the servers that is repeated.
	inspectLimit = 3 * time.Second
	// hearLimit bounds a look at the servers beside which a user waits.
	hearLimit = 700 * time.Millisecond
)

// inspect looks at the servers.
func (a *app) inspect(ctx context.Context, o servers.Options) *servers.Report {
	reach, err := a.looksAt() // each time: certificates may be replaced
	if err != nil {
		return &servers.Report{At: time.Now(), Findings: []servers.Finding{{Severity: servers.Problem, Text: err.Error(), Fix: "correct the command line"}}}
	}
	o.Servers, o.TLS = reach.Servers, reach.TLS
	return translated(servers.Look(ctx, o))
}

// hear adds to the holders what the servers say against their sessions, within limit. It asks no server if there are no holders.
func (a *app) hear(ctx context.Context, limit time.Duration, rows []tree.Row) {
	held := func(r tree.Row) bool { return r.State == zksync.Held && r.Session != "" }
	if !slices.ContainsFunc(rows, held) || limit <= 0 {
		return
	}
	r := a.inspect(ctx, servers.Options{Limit: limit, Brief: true})
	for i := range rows {
		if held(rows[i]) {
			rows[i].Heard, rows[i].Dead = r.Dead(tree.SessionID(rows[i].Session))
		}
	}
}

// surveyOnce connects and reads one view.
func (a *app) surveyOnce(cmd *cobra.Command, root string) (v *survey.View, err error) {
	all := &survey.Survey{Root: root}
	err = a.looking(cmd, all.Heard, func(ctx context.Context, s *zksync.Session, _ func()) error {
		all.Session = s
		v, err = all.Once(ctx)
		return err
	})
	return v, err
}
