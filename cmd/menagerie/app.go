package main

import (
	"io"
	"sync"
)

// app is what all commands share: where to write, and how to reach the servers.
type app struct {
	args           []string // as given, for the one question pflag cannot answer (see commandOf)
	stdout, stderr io.Writer
	misnamed       error     // what --help was asked about is no command
	hurry          sync.Once // see hurried
	connection
}

// target names the servers: those that were given or the local default.
func (a *app) target() string {
	if a.servers == "" {
		return defaultServers
	}
	return a.servers
}

// described is target, with a hint if it is the default.
func (a *app) described() string {
	if a.servers == "" {
		return defaultServers + " (the default, because neither --servers nor " + serversEnv + " is given)"
	}
	return a.servers
}
