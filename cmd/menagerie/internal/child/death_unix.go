//go:build unix && !linux

package child

import "syscall"

// dieWithParent does nothing: only Linux ends a child with its parent.
func dieWithParent(*syscall.SysProcAttr) {}
