//go:build unix

package child

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func configure(cmd *exec.Cmd, tty *terminal) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	tty.giveAtStart(cmd.SysProcAttr)
	// A signal that is listened to has its usual action in the command. One that is ignored would be ignored there, too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTTOU)
}

// ignoreOthersWrites keeps this process running when another process of its group writes to a terminal with "stty tostop"
// while the command has the foreground: the kernel then stops the whole group.
func ignoreOthersWrites() { signal.Ignore(syscall.SIGTTOU) }

func tookForeground(cmd *exec.Cmd) bool { return cmd.SysProcAttr.Foreground }

// exitCode follows the shell: 128 + n for a process that signal n ended.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// signalGroup sends sig to the group. The child leads its group, so both have one number,
// and the number stays taken as long as anything is left of the group. An error means that
// nothing is left.
func signalGroup(leader *os.Process, sig os.Signal) {
	if n, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(-leader.Pid, n)
	}
}

// terminateGroup sends SIGTERM, and SIGCONT because a stopped process sees it only then.
func terminateGroup(leader *os.Process) {
	signalGroup(leader, syscall.SIGTERM)
	signalGroup(leader, syscall.SIGCONT)
}

func killGroup(leader *os.Process) { signalGroup(leader, syscall.SIGKILL) }

// groupAlive reports whether anything is left of the group.
func groupAlive(leader *os.Process) bool {
	return syscall.Kill(-leader.Pid, 0) == nil
}
