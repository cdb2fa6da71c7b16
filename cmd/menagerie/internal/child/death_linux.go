package child

import "syscall"

// dieWithParent has the kernel kill the child when this process dies, however it dies:
// the lock would soon be somebody else's. What the child itself has started is not included.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
