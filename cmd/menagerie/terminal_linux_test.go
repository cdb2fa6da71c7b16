package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// onTerminal starts args as the leader of a session on a new terminal. What is written to
// the returned file is typed there; what is shown there is the program's stdout.
func onTerminal(t *testing.T, args ...string) (*program, *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = keyboard.Close() })
	var number, unlock int32
	control(t, keyboard, syscall.TIOCGPTN, &number)
	control(t, keyboard, syscall.TIOCSPTLCK, &unlock)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()

	p := &program{t: t, cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = tty, tty, tty
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.cmd.Start())
	go func() {
		data := make([]byte, 4096)
		for {
			n, err := keyboard.Read(data)
			_, _ = p.stdout.Write(data[:n])
			if err != nil { // EIO, when the last process has closed the terminal
				return
			}
		}
	}()
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
	return p, keyboard
}

func control(t *testing.T, f *os.File, request uintptr, value *int32) {
	t.Helper()
	raw, err := f.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(unsafe.Pointer(value)))
		require.Zero(t, errno)
	}))
}

// readsHello types a line, which the program p reads and prints.
func readsHello(p *program, keyboard *os.File) {
	p.t.Helper()
	p.prints("ready")
	_, err := keyboard.WriteString("hello\n")
	require.NoError(p.t, err)
	p.prints("got <hello>")
	require.Equal(p.t, 0, p.wait())
}

func TestACommandMayReadFromTheTerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, keyboard := onTerminal(t, binary, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", `echo ready; read x; echo "got <$x>"`)
	readsHello(p, keyboard)
}

func TestCtrlCReachesACommandOnATerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, keyboard := onTerminal(t, binary, "lock", "/a", "--servers", s.addr, "--", "sh", "-c", `trap "exit 9" INT; echo ready; while :; do sleep 0.01; done`)
	p.prints("ready")
	_, err := keyboard.WriteString("\x03")
	require.NoError(t, err)
	require.Equal(t, 9, p.wait())
	require.Zero(t, s.ChildCount("/a"))
}

func TestCtrlCEndsAWaiterOnATerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	holder(t, s, "/a")
	p, keyboard := onTerminal(t, binary, "lock", "/a", "--servers", s.addr, "--", "true")
	s.queued(t, "/a", 2)
	_, err := keyboard.WriteString("\x03")
	require.NoError(t, err)
	require.Equal(t, 130, p.wait())
	require.Equal(t, 1, s.ChildCount("/a"))
}

// A shell with job control starts the lock; Ctrl-Z gives the shell back, and fg resumes.
func TestCtrlZStopsTheJobAndForegroundResumesIt(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	script := fmt.Sprintf(`set -m
%s lock /a --servers %s --timeout 30s -- sh -c 'echo ready; read x; echo "got <$x>"'
echo "status $?"
fg >/dev/null
echo "end $?"`, binary, s.addr)
	p, keyboard := onTerminal(t, "sh", "-c", script)
	p.prints("ready")
	_, err := keyboard.WriteString("\x1a")
	require.NoError(t, err)
	p.prints("status 148")
	_, err = keyboard.WriteString("hello\n")
	require.NoError(t, err)
	p.prints("got <hello>")
	p.prints("end 0")
	require.Equal(t, 0, p.wait())
}

// The lock is gone while the job is stopped: the command must not run on when it resumes.
func TestAJobThatWasStoppedForTooLongDoesNotRunOn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	script := fmt.Sprintf(`set -m
%s lock /a --servers %s --timeout 3s -- sh -c 'trap "echo told; exit 0" TERM CONT; echo ready; read x; echo "ran on"'
echo "status $?"
read y
fg >/dev/null
echo "end $?"`, binary, s.addr)
	p, keyboard := onTerminal(t, "sh", "-c", script)
	p.prints("ready")
	_, err := keyboard.WriteString("\x1a")
	require.NoError(t, err)
	p.prints("status 148")
	s.queued(t, "/a", 0) // the session has expired
	_, err = keyboard.WriteString("go\n")
	require.NoError(t, err)
	p.prints("end 76")
	require.NotContains(t, p.stdout.String(), "ran on")
}

// In a pipeline the reader at the end may be a pager, which needs the terminal. A command
// that asks for it all the same gets it.
func TestACommandInAPipelineGetsTheTerminalWhenItReads(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	script := fmt.Sprintf(`%s lock /a --servers %s -- sh -c 'echo ready; read x; echo "got <$x>"' | cat`, binary, s.addr)
	p, keyboard := onTerminal(t, "sh", "-c", script)
	readsHello(p, keyboard)
}

// A job in the background must not take the terminal from the shell, neither when its
// command reads nor when it ends.
func TestABackgroundJobLeavesTheTerminalAlone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	script := fmt.Sprintf(`set -m
%[1]s lock /a --servers %[2]s --timeout 30s -- sh -c 'echo ready; read x </dev/tty; echo "got <$x>"' &
while jobs >"%[3]s"; ! grep -q Stopped "%[3]s"; do sleep 0.01; done
echo waiting; read y; echo "shell <$y>"
fg >/dev/null
echo "end $?"`, binary, s.addr, filepath.Join(t.TempDir(), "jobs"))
	p, keyboard := onTerminal(t, "sh", "-c", script)
	p.prints("waiting")
	_, err := keyboard.WriteString("one\n")
	require.NoError(t, err)
	p.prints("shell <one>")
	_, err = keyboard.WriteString("two\n")
	require.NoError(t, err)
	p.prints("got <two>")
	p.prints("end 0")
	require.Equal(t, 0, p.wait())
}

// The command has the foreground, so the holder writes from the background.
func TestATerminalThatStopsWritersInTheBackgroundDoesNotStopTheHolder(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	script := fmt.Sprintf(`set -m; stty tostop
%s lock /a -v --servers %s --timeout 20s -- sh -c 'echo ready; read x; exit 4'
echo "end $?"`, binary, s.addr)
	p, keyboard := onTerminal(t, "sh", "-c", script)
	p.prints("ready")
	s.Stop()
	p.prints("menagerie: connection lost")
	s.Restart()
	p.prints("menagerie: connected again")
	_, err := keyboard.WriteString("go\n")
	require.NoError(t, err)
	p.prints("end 4")
	require.Equal(t, 0, p.wait())
}

// A write while a command starts must stop neither the holder, nor the command, nor others in the holder's process group.
func TestTheHolderMayWriteWhileItsCommandsStart(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	chatter := fmt.Sprintf("%s=1 %s", chattersEnv, self)
	for name, script := range map[string]string{
		"in front":         `set -m; ` + chatter + `; echo "end $?"`,
		"behind":           `set -m; ` + chatter + ` & wait $!; echo "end $?"`,
		"as part of a job": `set -m; sh -c '` + chatter + `; exit $?'; echo "end $?"`,
		"no job control":   chatter + `; echo "end $?"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := onTerminal(t, "sh", "-c", "stty tostop; "+script)
			p.prints("end 0")
			require.Zero(t, p.wait())
		})
	}
}

func TestBenchShowsOneLineOnATerminal(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, _ := onTerminal(t, binary, "bench", "--duration", "50ms", "--clients", "1,2", "--rounds", "2", "--servers", s.addr)
	require.Equal(t, 0, p.wait())
	p.prints("requests/op")
	shown := p.stdout.String()
	require.Contains(t, shown, "\r\x1b[K[1/2] uncontended, 1 client: warm-up, menagerie\r\x1b[K")
	require.Regexp(t, `\r\x1b\[K\[2/2\] contended, 2 clients: round 2 of 2, floor(; about \d+s left)?\r\x1b\[K`, shown)
	first, _, _ := strings.Cut(shown, "\n")
	require.Regexp(t, `\r\x1b\[K +scenario +clients`, first, "nothing of the line is left")
}
