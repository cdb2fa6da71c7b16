//go:build unix

package demo

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C away from the worker: the parent gets it and ends
// the workers in order.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// wasKilled reports whether a signal ended the process.
func wasKilled(p *process) bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
