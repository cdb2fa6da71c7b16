package ensemble

import "syscall"

// serverAttributes keep a Ctrl-C at the terminal from the servers, whose end is ours to decide, and
// have the kernel kill them when this process dies without closing the ensemble.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
