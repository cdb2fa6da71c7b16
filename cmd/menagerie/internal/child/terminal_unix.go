//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package child

import (
	"os"
	"syscall"
	"unsafe"
)

// terminal is the controlling terminal of this process. A nil terminal, of a process
// without one, does nothing.
//
// A process outside the foreground group is stopped when it reads from the terminal. The
// command has a group of its own, so the foreground has to move there and back, as a
// shell does it for its jobs.
type terminal struct {
	fd  int
	own int // the process group of this process
}

// controllingTerminal returns nil unless standard input is the controlling terminal.
func controllingTerminal() *terminal {
	t := &terminal{fd: syscall.Stdin, own: syscall.Getpgrp()}
	if _, err := t.foreground(); err != nil {
		return nil
	}
	return t
}

// giveAtStart makes the new child's group the foreground group, before the child runs, if
// this process has the foreground. In front of a pipe it does not: a pager at its other
// end needs the terminal more.
func (t *terminal) giveAtStart(attr *syscall.SysProcAttr) {
	if !t.isForeground() {
		return
	}
	if info, err := os.Stdout.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		return
	}
	attr.Foreground = true
	attr.Ctty = t.fd
}

// giveTo makes group the foreground group if this process has the foreground to give, and
// reports that.
func (t *terminal) giveTo(group int) bool {
	if !t.isForeground() {
		return false
	}
	t.setForeground(group)
	return true
}

// takeBack returns the foreground from group to this process. If somebody else has it, as
// when the whole job runs in the background, it stays there.
func (t *terminal) takeBack(group int) {
	if t == nil {
		return
	}
	if now, err := t.foreground(); err == nil && now == group {
		t.reclaim()
	}
}

// reclaim takes the foreground, whoever has it.
func (t *terminal) reclaim() {
	if t != nil {
		t.setForeground(t.own)
	}
}

func (t *terminal) isForeground() bool {
	if t == nil {
		return false
	}
	group, err := t.foreground()
	return err == nil && group == t.own
}

func (t *terminal) foreground() (int, error) {
	var group int32
	if err := ioctl(t.fd, syscall.TIOCGPGRP, &group); err != nil {
		return 0, err
	}
	return int(group), nil
}

// setForeground ignores errors: the terminal may have gone, and then so has the need.
func (t *terminal) setForeground(group int) {
	g := int32(group)
	FromBackground(func() { _ = ioctl(t.fd, syscall.TIOCSPGRP, &g) })
}

func ioctl(fd int, request uintptr, group *int32) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(group)))
	if errno != 0 {
		return errno
	}
	return nil
}
