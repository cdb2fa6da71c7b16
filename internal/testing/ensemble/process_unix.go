//go:build unix

package ensemble

import "syscall"

func (p *process) terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
func (p *process) thaw() error      { return p.cmd.Process.Signal(syscall.SIGCONT) }

func (p *process) freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.awaitFrozen()
}
