package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// strictBuiltins makes cobra's own commands refuse unknown arguments, as ours do. By default they
// print help and end with 0, and a shell profile would take that for the completion script.
func strictBuiltins(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			known := c.Run
			c.Run = nil
			c.RunE = func(c *cobra.Command, args []string) error {
				if found, rest, err := root.Find(args); err != nil || found == root && len(rest) > 0 {
					return unknownCommand(root, args[0])
				}
				known(c, args)
				return nil
			}
		case "completion":
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(c *cobra.Command, args []string) error {
				if len(args) == 0 {
					return c.Help()
				}
				var shells []string
				for _, s := range c.Commands() {
					shells = append(shells, s.Name())
				}
				slices.Sort(shells)
				last := len(shells) - 1
				return usage("cannot complete for %q, want %s or %s", args[0], strings.Join(shells[:last], ", "), shells[last])
			}
		}
	}
}

// unknownCommand names the commands that may have been meant.
func unknownCommand(root *cobra.Command, name string) error {
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return usage("unknown command %q, did you mean %s?", name, strings.Join(near, " or "))
	}
	return usage("unknown command %q", name)
}
