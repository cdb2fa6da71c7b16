package child

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// FromBackground calls f, which may write to the terminal and move its foreground although this process is in the
// background: with "stty tostop" a write stops the whole process group, the command's start included, and a move always
// does. The kernel makes an exception for a thread that blocks SIGTTOU. Only f's thread does that, so commands have the
// signal as this process inherited it, at whatever time they are started.
func FromBackground(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var with, before unix.Sigset_t
	with.Val[0] = 1 << (unix.SIGTTOU - 1)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &with, &before) == nil {
		defer func() { _ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) }()
	}
	f()
}
