package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/go-menagerie/menagerie/zklatch"
)

func (a *app) gateCommand() *cobra.Command {
	command := func(s step, f func(*zklatch.Gate, context.Context) error) *cobra.Command {
		s.of, s.wrong = "gate", "something else is at PATH"
		s.use = func(w *vigil, path string) error { return f(zklatch.NewGate(w.s, path), w.ctx) }
		return a.stepCommand(s)
	}
	return family(&cobra.Command{
		Use:   "gate close|open|wait PATH",
		Short: "Hold processes up at a gate until it is opened",
		Long: `A gate is open until a process closes it, and then closed until a process opens it. It stays as it is when
that process ends. Processes that wait at it pass while it is open, however many they are. For example,
batch jobs may wait at it while a database is moved.`,
		Example: `  menagerie gate close /gates/deploy
  menagerie gate wait /gates/deploy --wait 1s || echo "still closed"
  menagerie gate open /gates/deploy
  menagerie gate wait /gates/deploy --wait 1h && date`,
	}, command(step{
		name: "close", short: "Close a gate", doubt: "the gate may be closed:",
		long: `Closes the gate PATH. If it is closed already, that changes nothing: ls still shows the process that closed
it first.`,
		example: "  menagerie gate close /gates/deploy",
	}, (*zklatch.Gate).Close), command(step{
		name: "open", short: "Open a gate", doubt: "the gate may be open:",
		long:    `Opens the gate PATH, whichever process has closed it. If it is open already, that changes nothing.`,
		example: "  menagerie gate open /gates/deploy",
	}, (*zklatch.Gate).Open), command(step{
		name: "wait", short: "Wait until a gate is open",
		long: `Waits until the gate PATH is open. A gate that was never closed is open. If it opens only for a moment,
those that wait then pass.`,
		example: "  menagerie gate wait /gates/deploy --wait 1h && date",
	}, (*zklatch.Gate).Wait))
}
