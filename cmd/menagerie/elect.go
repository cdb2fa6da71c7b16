package main

import (
	"fmt"
	"os"

	"github.com/go-menagerie/menagerie/zkelection"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/spf13/cobra"
)

func (a *app) electCommand() *cobra.Command {
	var id string
	cmd := a.heldCommand(held{
		name: "elect", flags: "[--id ID] ", short: "Run a command on one of many machines, as the elected leader",
		what: "the leadership of the election PATH",
		long: `Start it on every machine that may do the work. One machine runs CMD. When it ends, dies or is
cut off, the one that has waited longest runs CMD. A leader that lost the leadership ends with
76; have systemd, for example, start it again as a candidate.`,
		example: `  menagerie elect /elections/scheduler -- sleep 1
  menagerie elect /elections/scheduler --id "$(uname -n):8080" -- sleep 1`,
		forms: func(s *zksync.Session, path string) (wait, try form) {
			e := zkelection.New(s, path, zkelection.Candidate{ID: id})
			return e.Campaign, e.TryCampaign
		},
	})
	cmd.Flags().StringVar(&id, "id", defaultID(), "the candidate's `name`, which \"ls\" and package zkelection show")
	return cmd
}

// defaultID names this process.
func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
