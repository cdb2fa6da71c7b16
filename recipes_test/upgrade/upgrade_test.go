package upgrade

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zktest"
)

const (
	module    = "github.com/go-menagerie/menagerie/"
	contender = "recipes_test/upgrade/contender"
)

// from is the revision that today's is compared with: the previous commit, unless MENAGERIE_UPGRADE_FROM names another one.
var from = cmp.Or(os.Getenv("MENAGERIE_UPGRADE_FROM"), "HEAD~1")

type stay struct {
	Type     string
	From, To int64
	today    bool
}

func TestAcceptance161ThePreviousCommitAndTodaysContendWithoutOverlap(t *testing.T) {
	if os.Getenv(ensemble.ServersEnv) != "" {
		t.Skip("has a server of its own, so it ran with the in-process tests")
	}
	t.Parallel()
	if _, err := git("rev-parse", "--verify", "--quiet", from+"^{commit}"); err != nil {
		t.Skipf("there is no git history here, so there is no %s", from)
	}
	programs := []string{build(t, "../.."), build(t, older(t))}
	srv, err := zktest.StartAddr("127.0.0.1:0")
	require.NoError(t, err)
	defer srv.Close()
	stays := make(chan []stay, len(programs))
	for i, program := range programs {
		go func() {
			var out, errs bytes.Buffer
			c := exec.CommandContext(t.Context(), program, srv.Addr(), "3s")
			c.Stdout, c.Stderr = &out, &errs
			var all []stay
			if err := c.Run(); err != nil {
				t.Errorf("%s: %v: %s", program, err, &errs)
			} else if err := json.Unmarshal(out.Bytes(), &all); err != nil {
				t.Error(err)
			}
			for k := range all {
				all[k].today = i == 0
			}
			stays <- all
		}()
	}
	byType := make(map[string][]stay)
	for range programs {
		for _, s := range <-stays {
			byType[s.Type] = append(byType[s.Type], s)
		}
	}
	require.NotEmpty(t, byType)
	for name, all := range byType {
		slices.SortFunc(all, func(a, b stay) int { return cmp.Compare(a.From, b.From) })
		count := map[bool]int{}
		for i, s := range all {
			count[s.today]++
			if i > 0 {
				require.LessOrEqual(t, all[i-1].To, s.From, "%s: two were inside at once, today's build %t and %t", name, all[i-1].today, s.today)
			}
		}
		t.Logf("%s: today's build was inside %d times, %s %d times", name, count[true], from, count[false])
		require.Positive(t, count[true], name)
		if _, known := count[false]; !known {
			t.Logf("%s does not know %s", from, name)
		}
	}
	for _, name := range []string{"zksync", "zkrwmutex", "zksemaphore", "zkelection", "reentrant"} {
		for _, today := range []bool{true, false} {
			require.True(t, slices.ContainsFunc(byType[name], func(s stay) bool { return s.today == today }), "%s, today %t", name, today)
		}
	}
}

// older is a tree of the older revision, with today's contender, as far as that revision has what it imports.
func older(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	archive := exec.Command("git", "-C", "../..", "archive", "--format=tar", from)
	unpack := exec.Command("tar", "-x", "-C", dir)
	var err error
	unpack.Stdin, err = archive.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, unpack.Start())
	require.NoError(t, archive.Run())
	require.NoError(t, unpack.Wait())

	target := filepath.Join(dir, contender)
	require.NoError(t, os.RemoveAll(target))
	require.NoError(t, os.MkdirAll(target, 0o755))
	sources, err := filepath.Glob("contender/*.go")
	require.NoError(t, err)
	for _, source := range sources {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		if has(dir, string(text)) {
			require.NoError(t, os.WriteFile(filepath.Join(target, filepath.Base(source)), text, 0o644))
		}
	}
	return dir
}

// has reports whether a tree has all packages of ours that a source imports.
func has(dir, source string) bool {
	for _, part := range strings.Split(source, `"`+module)[1:] {
		pkg, _, _ := strings.Cut(part, `"`)
		if _, err := os.Stat(filepath.Join(dir, pkg)); err != nil {
			return false
		}
	}
	return true
}

func build(t *testing.T, tree string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "contender")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	c := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./"+contender)
	c.Dir = tree
	start := time.Now()
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("built %s in %v", tree, time.Since(start).Round(time.Second))
	return program
}

func git(args ...string) ([]byte, error) {
	return exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
}
