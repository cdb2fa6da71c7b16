//go:build !unix

package main

import (
	"os"
	"syscall"
)

// forwardedSignals end a wait; a running CMD gets Ctrl-C from its console by itself.
var forwardedSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}
