//go:build unix

package docs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
	"github.com/stretchr/testify/require"
)

// A block with commands behind "$ " is a transcript. It runs against a server of zktest, in a folder of its own, and what it shows
// must have the shape of what is printed: numbers, times, addresses, hosts and ids may differ. Processes in the background go on
// until the end. The scripts that it names are there, and succeed at once, unless scripts says more.
var (
	// before are the commands that make what a transcript assumes. The keys are names of blocks.
	before = map[string]string{
		"cli.md#nothing-is-granted/2": `menagerie gate close /gates/deploy
			menagerie lock /locks/disk --lock-delay 20s --timeout 500ms -- sleep 60 & holder=$!
			until menagerie ls /locks/disk 2> /dev/null | grep -q held; do sleep 0.05; done; kill -KILL $holder
			until [ -z "$(menagerie ls /locks/disk --json | grep held)" ]; do sleep 0.05; done
			for n in 1 2 3; do menagerie sem /restarts --permits 2 -- sleep 60 & done
			menagerie gate close /private --acl creator --auth digest:me:secret`,
		"cli.md#before-a-release-or-a-shutdown": `menagerie lock /deploy/rollout -- sleep 60 &
			until menagerie ls /deploy/rollout 2> /dev/null | grep -q held; do sleep 0.05; done`,
		"cli.md#a-holder-is-dead-or-stands-still": `menagerie lock /locks/nightly --timeout 3s -- ./backup.sh & holder=$!
			until menagerie ls /locks/nightly 2> /dev/null | grep -q held; do sleep 0.05; done
			menagerie lock /locks/nightly -- sleep 60 &
			until menagerie ls /locks/nightly 2> /dev/null | grep -q waiting; do sleep 0.05; done
			kill -STOP $holder`,
		"commands/once.md#once": `menagerie once /migrations/42 -- ./migrate.sh 42`,
		"commands/ls.md#ls": twoLocks + `
			menagerie sem /gpu --permits 8 --weight 3 -- sleep 60 &
			menagerie sem /gpu --permits 8 --weight 2 -- sleep 60 &
			until menagerie ls /gpu 2> /dev/null | grep -q "^1"; do sleep 0.05; done
			menagerie sem /gpu --permits 8 --weight 4 -- sleep 60 &
			menagerie gate close /jobs/night; menagerie latch down /jobs/loaded --count 5
			menagerie once /migrate -- ./migrate.sh
			menagerie elect /scheduler --id web-3:8080 -- sleep 60 &
			until menagerie ls /scheduler 2> /dev/null | grep -q held; do sleep 0.05; done
			menagerie elect /scheduler --id web-4:8080 -- sleep 60 &`,
		"operations.md#a-lock-is-held-too-long": twoLocks,
		"operations.md#a-lock-is-stuck":         oneLock,
		"operations.md#a-holder-is-dead": `menagerie lock /locks/nightly --timeout 5s -- ./backup.sh & holder=$!
			until menagerie ls /locks/nightly 2> /dev/null | grep -q held; do sleep 0.05; done
			menagerie lock /locks/nightly -- true &
			until menagerie ls /locks/nightly 2> /dev/null | grep -q waiting; do sleep 0.05; done
			kill -KILL $holder`,
		"operations.md#nothing-is-granted": oneLock,
		"operations.md#elements-come-again-and-again": `for value in tea coffee milk; do menagerie queue put /queues/mails $value; done
			for n in 1 2; do menagerie queue receive /queues/mails -- false; done`,
	}
	// elsewhereRun are the transcripts that do not run here, and why not, with the tests that run their like.
	elsewhereRun = map[string]string{
		"cli.md#a-lock-is-stuck":                         "a terminal: `TestOnATerminalReleaseAsks`",
		"cli.md#a-server-is-gone":                        "real servers: `TestAServerThatIsDownIsAFindingOnly`",
		"cli.md#a-server-is-gone/2":                      "real servers: `TestServersWithoutAQuorumDoNotServe`",
		"operations.md#no-session":                       "real servers: `TestServersWithoutAQuorumDoNotServe`",
		"operations.md#a-server-is-lost":                 "real servers: `TestASilentServerDoesNotKeepTheOthersFromBeingSeen`",
		"commands/demo.md#demo":                          "it is long: `TestDemoWithAKilledHolderLosesNothing`",
		"commands/demo.md#serve":                         "a client: `TestServeVerboseTellsRequestsSessionsAndConnections`",
		"commands/queue.md#queue/2":                      "a signal: `TestAcceptance173QueueWorkRunsCMDOnEachElement`",
		"commands/status.md#release":                     "a terminal: `TestOnATerminalReleaseAsks`",
		"commands/status.md#status":                      "real servers: `TestAServerThatIsDownIsAFindingOnly`",
		"control.md#faults-for-tests-in-other-languages": "a session: `TestControlExpiresASession`",
	}
	scripts = map[string]string{"backup.sh": "exec sleep 60", "report.sh": "exec sleep 60"}
	// checkedOnly are the blocks with commands of menagerie, and without output, that do not run, and why not.
	checkedOnly = map[string]string{
		"commands/barrier.md#barrier": "each waits for parties",
	}
	// programs are not there, or would do something here.
	programs = []string{"make", "man", "systemctl"}
)

const (
	oneLock = `menagerie lock /locks/nightly -- ./backup.sh &
		until menagerie ls /locks/nightly 2> /dev/null | grep -q "^0"; do sleep 0.05; done`
	twoLocks = oneLock + `
		menagerie lock /locks/nightly -- ./backup.sh &
		until menagerie ls /locks/nightly 2> /dev/null | grep -q "^1"; do sleep 0.05; done`
)

// patience is for a busy machine.
const patience = 30 * time.Second

func TestTranscriptsShowWhatIsPrinted(t *testing.T) {
	binary, used := build(t), make(map[string]bool)
	ran := 0
	for _, b := range blocks(t) {
		commands := b.commands()
		if b.lang != "console" || !strings.Contains(b.text, "$ menagerie ") {
			continue
		}
		for _, table := range []map[string]string{before, elsewhereRun} {
			if table[b.name] != "" {
				used[b.name] = true
			}
		}
		if elsewhereRun[b.name] != "" {
			continue
		}
		ran++
		t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
			t.Parallel()
			s := openShell(t, binary)
			s.write(t, b.text+before[b.name], scripts)
			if setUp := before[b.name]; setUp != "" {
				s.run(t, "{\n"+setUp+"\n} > /dev/null 2>&1 < /dev/null")
			}
			for _, c := range commands {
				s.shows(t, c)
			}
		})
	}
	require.Greater(t, ran, 8)
	for name := range before {
		require.True(t, used[name], "there is no transcript %s", name)
	}
	exist := tests(t)
	for name, why := range elsewhereRun {
		require.True(t, used[name], "there is no transcript %s", name)
		require.NotEmpty(t, names(why), name)
		for _, test := range names(why) {
			require.True(t, exist[test], "%s: there is no %s", name, test)
		}
	}
}

// A block without output, with commands of menagerie in it, runs line by line, and each must succeed. All others are only checked:
// they build, install, measure or test something.
func TestShellBlocksWithMenagerieSucceed(t *testing.T) {
	binary, used := build(t), make(map[string]bool)
	for _, b := range blocks(t) {
		if b.lang != "sh" && b.lang != "bash" || !regexp.MustCompile(`(?m)^(.*&& )?menagerie `).MatchString(b.text) {
			continue
		}
		if used[b.name] = true; checkedOnly[b.name] != "" {
			continue
		}
		t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
			t.Parallel()
			s := openShell(t, binary)
			s.write(t, b.text, nil)
			require.NoError(t, os.Mkdir(filepath.Join(s.folder, "programs"), 0o700))
			for _, name := range programs {
				require.NoError(t, os.WriteFile(filepath.Join(s.folder, "programs", name), []byte("#!/bin/sh\n"), 0o700))
			}
			for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", "")) {
				s.run(t, "( PATH=$PWD/programs:$PATH\n"+line+") > out 2>&1 < /dev/null || echo failed: $? >> out")
				require.NotContains(t, read(t, filepath.Join(s.folder, "out")), "failed: ", line)
			}
		})
	}
	require.Greater(t, len(used), 5)
	for name := range checkedOnly {
		require.True(t, used[name], "there is no block %s", name)
	}
}

// A shell runs the commands of a transcript.
type shell struct {
	in     io.Writer
	out    *bufio.Reader
	folder string
	seen   []string // addresses that the transcript shows, and those that they are here
	n      int
}

func openShell(t *testing.T, binary string) *shell {
	srv := zktest.Start(zktest.WithTick(100 * time.Millisecond))
	t.Cleanup(srv.Close)
	s := &shell{folder: t.TempDir()}
	c := exec.Command("bash")
	c.Dir = s.folder
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "HOME="+s.folder, "USER=alice", "MENAGERIE_SERVERS="+srv.Addr())
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_, _ = io.WriteString(in, "kill $(jobs -p); kill -CONT $(jobs -p); wait; exit\n")
		late := time.AfterFunc(patience, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
		_ = c.Wait()
		late.Stop()
	})
	s.in, s.out = in, bufio.NewReader(out)
	return s
}

// write writes the scripts that commands name.
func (s *shell) write(t *testing.T, commands string, texts map[string]string) {
	for _, m := range scripted.FindAllStringSubmatch(commands, -1) {
		text := "#!/bin/sh\n" + texts[m[1]] + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(s.folder, m[1]), []byte(text), 0o700))
	}
}

// run runs commands, and waits for those in the foreground.
func (s *shell) run(t *testing.T, text string) {
	s.n++
	mark := fmt.Sprintf("end of command %d", s.n)
	_, err := io.WriteString(s.in, text+"\necho "+mark+"\n")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		line, err := s.out.ReadString('\n')
		if err == nil && line != mark+"\n" {
			err = fmt.Errorf("it printed %q", line)
		}
		done <- err
	}()
	select {
	case err := <-done:
		require.NoError(t, err, text)
	case <-time.After(patience):
		require.Fail(t, "it did not end", text)
	}
}

var (
	scripted  = regexp.MustCompile(`\./([\w.-]+)`)
	runnable  = regexp.MustCompile(`^(menagerie|cat|cd|echo|export|kill|mkdir|printf|sleep) |^\./`)
	look      = regexp.MustCompile(`^menagerie (ls|deadlocks|status)\b|^menagerie .* --wait \d`)
	queues    = regexp.MustCompile(`^menagerie (?:lock|rlock|sem|elect) (/\S+) .*&`) // whose next command comes when it has queued
	serve     = regexp.MustCompile(`\bmenagerie serve\b`)
	address   = regexp.MustCompile(`\b127\.0\.0\.1:\d+`)
	listens   = regexp.MustCompile(`(?m)^listening on (\S+)$`)
	varieties = []struct {
		of *regexp.Regexp
		is string
	}{
		{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UUID"},
		{regexp.MustCompile(`\b[0-9a-f]{16}-[0-9a-f]{8}\b`), "TOKEN"},
		{regexp.MustCompile(`0x[0-9a-f]+`), "ID"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\dZ?|\b\d\d:\d\d:\d\dZ`), "TIME"},
		{regexp.MustCompile(`[\w.-]+ pid \d+`), "PROCESS"},
		{regexp.MustCompile(`@[\w.-]+:\d+`), "@PROCESS"},
		{regexp.MustCompile(`\bon [\w.-]+:\d+ at\b`), "on PROCESS at"},
		{regexp.MustCompile(`\b[\w.-]+:\d{4,5}\b(,[\w.-]+:\d{4,5}\b)*`), "ADDRESS"},
		{regexp.MustCompile(`\b\d+ s\b`), "SPAN"},
		{regexp.MustCompile(`\b(\d[\d.]*(h|ms|µs|m|s))+\b`), "SPAN"},
		{regexp.MustCompile(` +`), " "},
	}
)

// shows runs a command until it prints what the page shows. Only one that looks, or gives up, is tried again. Other programs than menagerie and
// the simplest are not run: they would install something, or ask servers elsewhere.
func (s *shell) shows(t *testing.T, c command) {
	if !runnable.MatchString(c.text) {
		return
	}
	text := s.adapted(c.text)
	file := filepath.Join(s.folder, fmt.Sprintf("out-%d", s.n))
	want, got := shape(c.prints), []string(nil)
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if got == nil || look.MatchString(text) {
			s.run(t, "{\n"+text+"\n} > "+file+" 2>&1 < /dev/null")
		}
		printed := read(t, file)
		got = shape(printed)
		if slices.Equal(want, got) {
			s.meets(t, c.prints, printed)
			return
		}
		again := look.MatchString(text) || strings.Contains(text, "&")
		if !again || time.Since(began) > patience {
			require.Equal(t, want, got, "%s\nprints:\n%s", c.text, printed)
		}
	}
}

// adapted is a command as it runs here: with the addresses of this run, a free port, and, in the background, until it has queued.
func (s *shell) adapted(text string) string {
	text = strings.NewReplacer(s.seen...).Replace(text)
	serves := serve.MatchString(text)
	if serves && !strings.Contains(text, "--listen") {
		text = serve.ReplaceAllString(text, "menagerie serve --listen 127.0.0.1:0")
	}
	if serves && !strings.Contains(text, "&") {
		text = strings.TrimSpace(text) + " &"
	}
	if m := queues.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("entries() { menagerie ls %s 2> /dev/null | wc -l; }\nbefore=$(entries)\n%s\n"+
			"until [ $(entries) -gt $before ]; do sleep 0.05; done", m[1], text)
	}
	return text
}

// meets notes which addresses of the page are which here.
func (s *shell) meets(t *testing.T, shown, printed string) {
	here := address.FindAllString(printed, -1)
	for i, there := range address.FindAllString(shown, -1) {
		s.seen = append(s.seen, there, here[i])
	}
	if m := listens.FindStringSubmatch(printed); m != nil {
		s.run(t, "export MENAGERIE_SERVERS="+m[1])
	}
}

// shape is the lines of a text without what differs from run to run, sorted, because the order of some does.
func shape(text string) (lines []string) {
	lines = []string{}
	for line := range strings.Lines(text) {
		for _, v := range varieties {
			line = v.of.ReplaceAllString(line, v.is)
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	slices.Sort(lines)
	return lines
}
