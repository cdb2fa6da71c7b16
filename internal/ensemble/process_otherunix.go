//go:build unix && !linux

package ensemble

import "syscall"

// serverAttributes keep a Ctrl-C at the terminal from the servers, whose end is ours to decide. There
// is no way here to have them killed when this process dies without closing the ensemble.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
