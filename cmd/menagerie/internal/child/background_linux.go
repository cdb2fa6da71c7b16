package child

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// FromBackground calls f, which may write to the terminal and move its foreground while this process is in the
// background. Without it, each move, and with "stty tostop" each write, sends SIGTTOU to the process group, which stops
// it, even a command that is just being started. The kernel lets a thread pass that blocks the signal.
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
