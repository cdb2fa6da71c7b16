//go:build unix && !linux

package ensemble

import "syscall"

// serverAttributes keep a Ctrl-C at the terminal from the servers, whose end is ours to decide. There
// is no way here to have them killed when this process dies without closing the ensemble.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitFrozen does nothing: there is no portable way to ask whether the threads of another process have
// stopped, and they do within moments.
func (p *process) awaitFrozen() error { return nil }
