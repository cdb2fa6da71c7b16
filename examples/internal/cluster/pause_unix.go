//go:build unix

package cluster

import "syscall"

// Pause stops the process, as a long pause of its machine does. Continue lets it go on.
func (p *Process) Pause() error {
	p.c.Say("%-10s paused (SIGSTOP)", p.Name)
	return p.cmd.Process.Signal(syscall.SIGSTOP)
}

// Continue undoes Pause.
func (p *Process) Continue() error {
	p.c.Say("%-10s goes on (SIGCONT)", p.Name)
	return p.cmd.Process.Signal(syscall.SIGCONT)
}
