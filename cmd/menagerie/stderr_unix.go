//go:build unix

package main

import (
	"os"
	"syscall"
)

// standardError is standard error under another number. A write to a pipe without a reader fails there. Under its own
// number it would end the process with SIGPIPE, and CMD with it.
func standardError() *os.File {
	fd, err := syscall.Dup(syscall.Stderr)
	if err != nil {
		return os.Stderr
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), os.Stderr.Name())
}
