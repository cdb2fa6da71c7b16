package ensemble

import (
	"errors"
	"syscall"
)

var errNoSignal = errors.New("the system has no signal for it")

// serverAttributes keep a Ctrl-C at the terminal from the servers, whose end is ours to decide.
func serverAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func (p *process) terminate() error { return errNoSignal }
func (p *process) freeze() error    { return errNoSignal }
func (p *process) thaw() error      { return errNoSignal }
