//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly

package child

import "syscall"

// terminal is unused where the foreground of a terminal cannot be moved.
type terminal struct{}

func controllingTerminal() *terminal { return nil }

func (t *terminal) giveAtStart(*syscall.SysProcAttr) {}

func (t *terminal) takeBack(int) {}

func (t *terminal) reclaim() {}
