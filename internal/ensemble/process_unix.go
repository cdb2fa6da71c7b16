//go:build unix

package ensemble

import "syscall"

func (p *process) terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
func (p *process) freeze() error    { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) thaw() error      { return p.cmd.Process.Signal(syscall.SIGCONT) }
