//go:build unix

package main

import (
	"os"
	"syscall"
)

// forwardedSignals are what lock passes on to CMD. SIGQUIT is among them because Go would
// answer it with a dump of its stacks, and CMD would run on without a lock.
var forwardedSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
