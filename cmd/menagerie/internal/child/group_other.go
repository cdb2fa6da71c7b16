//go:build !unix

package child

import (
	"os"
	"os/exec"
)

// There are no process groups to signal here: the command is killed where a group would
// be asked to end, what it has started is not reached, and the console delivers Ctrl-C to
// the command without help.

func configure(*exec.Cmd, *terminal) {}

func ignoreOthersWrites() {}

// FromBackground calls f.
func FromBackground(f func()) { f() }

func tookForeground(*exec.Cmd) bool { return false }

func exitCode(state *os.ProcessState) int { return state.ExitCode() }

func signalGroup(*os.Process, os.Signal) {}

func terminateGroup(leader *os.Process) { _ = leader.Kill() }

func killGroup(leader *os.Process) { _ = leader.Kill() }

func groupAlive(*os.Process) bool { return false }
