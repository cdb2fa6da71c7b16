package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"
)

// watchStops does for the command what a shell does for a job that stops: Ctrl-Z stops
// this process too, so that the user's shell comes back, and a command that was stopped
// because it wanted the terminal gets it. It returns when the command has ended.
func (c *Child) watchStops(mayContinue func() bool) {
	events := make(chan os.Signal, 8)
	signal.Notify(events, syscall.SIGCHLD)
	// In the foreground the command gets Ctrl-Z, elsewhere this process does.
	ours := syscall.SIGTSTP
	if !c.cmd.SysProcAttr.Foreground {
		signal.Notify(events, syscall.SIGTSTP)
		// Once caught, Go keeps SIGTSTP from stopping this process for ever, so another
		// signal with the same effect has to do it.
		ours = syscall.SIGTTIN
	}
	defer signal.Stop(events)
	for {
		// First, because the command may have stopped before anybody listened.
		switch stopped(c.PID()) {
		case 0:
		case syscall.SIGTTIN, syscall.SIGTTOU:
			if c.tty.giveTo(c.PID()) {
				c.Signal(syscall.SIGCONT)
			} else {
				c.suspend(syscall.SIGTTIN, mayContinue)
			}
		case syscall.SIGTSTP:
			c.suspend(ours, mayContinue)
		}
		select {
		case <-c.done:
			return
		case sig := <-events:
			if sig == syscall.SIGTSTP {
				c.Signal(sig) // its stop is what stops this process
			}
		}
	}
}

// suspend stops this process and its group with the given signal until somebody continues
// it, and then the command. A stopped process sends no heartbeats, so the lock may be gone
// by then: in that case the command stays stopped until it is told to end.
func (c *Child) suspend(with syscall.Signal, mayContinue func() bool) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	c.tty.takeBack(c.PID())
	_ = syscall.Kill(0, with)
	// A process whose group has no shell above it is not stopped, nor would anybody
	// continue it: after a moment it goes on.
	select {
	case <-continued:
	case <-time.After(100 * time.Millisecond):
	}
	if mayContinue() {
		c.tty.giveTo(c.PID())
		c.Signal(syscall.SIGCONT)
	}
}

const (
	pidType  = 1 // P_PID
	stopOnly = 2 // WSTOPPED
	// cldStopped and cldTrapped are the codes of a stop in siginfo_t.
	cldStopped = 5
)

// siginfo is the part of the kernel's siginfo_t that waitid fills in, which is 128 bytes.
type siginfo struct {
	signo, errno, code int32
	_                  [padding]int32
	pid                int32
	uid                uint32
	status             int32
	_                  [128 - (6+padding)*4]byte
}

// padding aligns the union inside siginfo_t to the size of a pointer.
const padding = int32((unsafe.Sizeof(uintptr(0)) - 4) / 4)

// stopped returns the signal that has stopped the process since the last call, or 0. It
// never takes the process's end, which is os/exec's to collect.
func stopped(pid int) syscall.Signal {
	var info siginfo
	_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, pidType, uintptr(pid),
		uintptr(unsafe.Pointer(&info)), stopOnly|syscall.WNOHANG, 0, 0)
	if errno != 0 || info.pid == 0 || info.code != cldStopped {
		return 0
	}
	return syscall.Signal(info.status)
}
