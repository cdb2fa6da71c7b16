package session

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func sessionPath(t *testing.T) string { return filepath.Join(t.TempDir(), "session") }

func mustOpen(t *testing.T, path string) (*sessionFile, []zkconn.Credentials) {
	t.Helper()
	f, previous, err := openSessionFile(path, "s")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.close()) })
	return f, previous
}

func TestASavedSessionIsFoundByTheNextOpener(t *testing.T) {
	path := sessionPath(t)
	f, previous := mustOpen(t, path)
	require.Nil(t, previous, "nothing was there")
	want := zkconn.Credentials{ID: 0x1234_5678_9abc_def0, Passwd: []byte("0123456789abcdef")}
	require.NoError(t, f.save([]zkconn.Credentials{want}))
	require.NoError(t, f.close())
	require.NoError(t, f.close(), "closing again does nothing")

	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{"session":"0x123456789abcdef0","password":"MDEyMzQ1Njc4OWFiY2RlZg==","servers":"s"}`+"\n", string(content))

	_, previous = mustOpen(t, path)
	require.Equal(t, []zkconn.Credentials{want}, previous)
}

func TestEarlierSessionsAreKeptInTheirOrder(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	want := []zkconn.Credentials{
		{ID: 3, Passwd: []byte("p")},
		{ID: 1, Passwd: []byte("q")},
		{ID: 2, Passwd: []byte("r")},
	}
	require.NoError(t, f.save(want))
	require.NoError(t, f.close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{"session":"0x2","password":"cg==","servers":"s","earlier":[`+
		`{"session":"0x3","password":"cA=="},{"session":"0x1","password":"cQ=="}]}`+"\n", string(content))
	_, previous := mustOpen(t, path)
	require.Equal(t, want, previous)
}

func TestANegativeSessionIDIsKept(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	want := zkconn.Credentials{ID: -2, Passwd: []byte{0}}
	require.NoError(t, f.save([]zkconn.Credentials{want}))
	require.NoError(t, f.close())
	_, previous := mustOpen(t, path)
	require.Equal(t, []zkconn.Credentials{want}, previous)
}

func TestALaterSaveReplacesALongerOne(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	require.NoError(t, f.save([]zkconn.Credentials{{ID: 1, Passwd: bytes.Repeat([]byte("long"), 100)}}))
	want := zkconn.Credentials{ID: 2, Passwd: []byte("q")}
	require.NoError(t, f.save([]zkconn.Credentials{want}))
	require.NoError(t, f.close())
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(content, []byte("\n")))
	_, previous := mustOpen(t, path)
	require.Equal(t, []zkconn.Credentials{want}, previous)
}

func TestAClearedFileHoldsNoSessionAndTakesANewOne(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	require.NoError(t, f.save([]zkconn.Credentials{{ID: 1, Passwd: []byte("p")}}))
	require.NoError(t, f.save(nil))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, content)
	require.NoError(t, f.save([]zkconn.Credentials{{ID: 2, Passwd: []byte("q")}}))
	require.NoError(t, f.save(nil))
	require.NoError(t, f.close())
	_, previous := mustOpen(t, path)
	require.Nil(t, previous)
}

func TestContentThatSaveDidNotWriteIsNoSession(t *testing.T) {
	good := `{"session":"0x1","password":"cA==","servers":"s"}` + "\n"
	require.NotNil(t, decodeSessions([]byte(good)))
	require.NotNil(t, decodeSessions([]byte(good+`tail of a longer line"}`+"\n")), "killed before the file was cut")
	for _, content := range []string{
		"", "\n", "garbage\n", "\x00\x00\x00\n", "null\n", "{}\n", "[]\n",
		good[:len(good)-1], good[:len(good)/2], "\n" + good, "x" + good,
		`{"session":"0x0","password":"cA=="}` + "\n",
		`{"session":"1","password":"cA=="}` + "\n",
		`{"session":1,"password":"cA=="}` + "\n",
		`{"session":"0x01","password":"cA=="}` + "\n",
		`{"session":"0xFF","password":"cA=="}` + "\n",
		`{"session":"-0x1","password":"cA=="}` + "\n",
		`{"session":"0x10000000000000000","password":"cA=="}` + "\n",
		`{"session":"0x1","password":""}` + "\n",
		`{"session":"0x1"}` + "\n",
		`{"session":"0x1","password":"!"}` + "\n",
		`{"session":"0x1","password":"cA==","earlier":[{"session":"0x0","password":"cA=="}]}` + "\n",
		`{"session":"0x1","password":"cA==","earlier":{}}` + "\n",
		good + strings.Repeat("x", maxSessionFile),
	} {
		require.Nil(t, decodeSessions([]byte(content)), "%.100q", content)
	}
}

func TestAFileFullOfGarbageIsOpenedAndReused(t *testing.T) {
	path := sessionPath(t)
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("garbage "), 100_000), 0o600))
	f, previous := mustOpen(t, path)
	require.Nil(t, previous)
	want := zkconn.Credentials{ID: 3, Passwd: []byte("p")}
	require.NoError(t, f.save([]zkconn.Credentials{want}))
	require.NoError(t, f.close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(200))
	_, previous = mustOpen(t, path)
	require.Equal(t, []zkconn.Credentials{want}, previous)
}

// However far a save got, a successor sees the old session, the new one or none;
// never a mixture.
func TestADeathDuringASaveNeverMixesSessions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := func(label string) (zkconn.Credentials, []byte) {
			servers := rapid.StringMatching(`[a-z:,0-9]{0,30}`).Draw(t, label+".servers")
			s := zkconn.Credentials{
				ID:     rapid.Int64Range(1, 1<<40).Draw(t, label+".id"),
				Passwd: rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, label+".password"),
			}
			dir, err := os.MkdirTemp("", "zksync")
			require.NoError(t, err)
			defer func() { require.NoError(t, os.RemoveAll(dir)) }()
			f, _, err := openSessionFile(filepath.Join(dir, "session"), servers)
			require.NoError(t, err)
			require.NoError(t, f.save([]zkconn.Credentials{s}))
			require.NoError(t, f.close())
			content, err := os.ReadFile(filepath.Join(dir, "session"))
			require.NoError(t, err)
			return s, content
		}
		before, old := line("before")
		after, written := line("after")

		// The write is one piece; what can be seen is either none of it or all of it,
		// with the rest of a longer old line behind.
		notCut := append(bytes.Clone(written), old[min(len(written), len(old)):]...)
		require.Equal(t, []zkconn.Credentials{before}, decodeSessions(old))
		require.Equal(t, []zkconn.Credentials{after}, decodeSessions(notCut))
		// A file system that lost its tail with the power leaves no session.
		lost := rapid.IntRange(0, len(written)-1).Draw(t, "kept")
		require.Nil(t, decodeSessions(written[:lost]))
	})
}

func TestASessionTooLargeForTheFileIsRefusedAndTheOldOneKept(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	want := zkconn.Credentials{ID: 1, Passwd: []byte("p")}
	require.NoError(t, f.save([]zkconn.Credentials{want}))
	err := f.save([]zkconn.Credentials{{ID: 2, Passwd: bytes.Repeat([]byte("p"), maxSessionFile)}})
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.NoError(t, f.close())
	_, previous := mustOpen(t, path)
	require.Equal(t, []zkconn.Credentials{want}, previous)
}

func TestUsingAClosedFileIsAnErrorThatNamesIt(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	require.NoError(t, f.close())
	err := f.save([]zkconn.Credentials{{ID: 1, Passwd: []byte("p")}})
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorContains(t, err, path)
	err = f.save(nil)
	require.ErrorIs(t, err, os.ErrClosed)
	require.ErrorContains(t, err, path)
}

func TestASecondSessionOfTheSameProcessIsRefused(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	require.NoError(t, f.save([]zkconn.Credentials{{ID: 1, Passwd: []byte("p")}}))
	for range 3 {
		_, _, err := openSessionFile(path, "s")
		require.ErrorIs(t, err, errs.ErrMisuse)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "give each its own file")
	}
	require.NoError(t, f.close())
	_, previous := mustOpen(t, path)
	require.NotNil(t, previous)
}

func TestADirectoryThatIsNotThereIsAnErrorThatNamesThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "session")
	_, _, err := openSessionFile(path, "s")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)
	_, _, err = openSessionFile(t.TempDir(), "s")
	require.Error(t, err, "a directory is no file")
}

// ownerEnv tells the re-executed test binary to be the owner of a session file.
const ownerEnv = "ZKSYNC_TEST_SESSION_FILE"

// TestSessionFileOwnerProcess is the second process of the tests below: it opens
// the file, saves a session, says so and lives until it is killed or its standard
// input is closed.
func TestSessionFileOwnerProcess(t *testing.T) {
	path := os.Getenv(ownerEnv)
	if path == "" {
		return // an ordinary test run
	}
	f, previous, err := openSessionFile(path, "s")
	if err != nil {
		fmt.Printf("refused: %v\n", err)
		return
	}
	require.NoError(t, f.save([]zkconn.Credentials{{ID: int64(os.Getpid()), Passwd: []byte("secret")}}))
	fmt.Printf("owner, previous %t\n", previous != nil)
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	require.Error(t, err, "standard input was closed")
	require.NoError(t, f.save(nil))
	require.NoError(t, f.close())
}

// ownerEnviron also spares the child the second that the race detector waits at
// the end of a process.
func ownerEnviron(path string) []string {
	return append(os.Environ(), ownerEnv+"="+path, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
}

// startOwner runs another process with the file and returns what it said first.
func startOwner(t *testing.T, path string) (cmd *exec.Cmd, finish func(), said string) {
	t.Helper()
	cmd = exec.Command(os.Args[0], "-test.run=^TestSessionFileOwnerProcess$")
	cmd.Env = ownerEnviron(path)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ended := false
	finish = func() {
		if !ended {
			ended = true
			_ = stdin.Close() // already closed if the process is gone
			_ = cmd.Wait()    // a killed process is an error here
		}
	}
	t.Cleanup(finish)
	said, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	return cmd, finish, said
}

func TestALivingProcessKeepsItsFileAndADeadOneHandsItOver(t *testing.T) {
	path := sessionPath(t)
	cmd, finish, said := startOwner(t, path)
	require.Equal(t, "owner, previous false\n", said)

	_, _, err := openSessionFile(path, "s")
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "another living process")

	require.NoError(t, cmd.Process.Kill()) // SIGKILL: it has no chance to clean up
	finish()
	_, previous := mustOpen(t, path)
	require.Equal(t, []zkconn.Credentials{{ID: int64(cmd.Process.Pid), Passwd: []byte("secret")}}, previous)
}

func TestAnotherProcessIsRefusedWhileThisOneHoldsTheFile(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	_, finish, said := startOwner(t, path)
	finish()
	require.Contains(t, said, "refused: zksync: session file "+path)
	require.NoError(t, f.save([]zkconn.Credentials{{ID: 9, Passwd: []byte("p")}}))
	require.NoError(t, f.close())

	_, finish, said = startOwner(t, path)
	require.Equal(t, "owner, previous true\n", said)
	finish()
	_, previous := mustOpen(t, path)
	require.Nil(t, previous, "it ended cleanly")
}

// A child that a process starts must not keep the file locked after the death of
// that process.
func TestTheLockIsNotInheritedByChildren(t *testing.T) {
	path := sessionPath(t)
	f, _ := mustOpen(t, path)
	child := exec.Command(os.Args[0], "-test.run=^TestSessionFileOwnerProcess$")
	child.Env = ownerEnviron(sessionPath(t))
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	defer func() {
		require.NoError(t, stdin.Close())
		require.NoError(t, child.Wait())
	}()
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "the child runs")
	require.NoError(t, f.close())
	mustOpen(t, path)
}

func FuzzDecodeSessions(f *testing.F) {
	f.Add([]byte(`{"session":"0x1","password":"cA==","servers":"s"}` + "\n"))
	f.Add([]byte(`{"session":"0x1","password":"cA==","servers":"s","earlier":[{"session":"0x2","password":"cA=="}]}` + "\n"))
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, s := range decodeSessions(content) {
			require.NotZero(t, s.ID)
			require.NotEmpty(t, s.Passwd)
		}
	})
}
