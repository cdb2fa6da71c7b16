package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// This repository with what is changed but not committed, as a release of it would be prepared.
func TestThisRepositoryCanBeReleased(t *testing.T) {
	t.Parallel()
	repo := thisRepository(t)
	before := git(t, repo, "rev-parse", "HEAD")
	var out strings.Builder
	dir := t.TempDir()
	o := options{repository: repo, version: "v0.99.0", now: time.Date(2031, 2, 3, 23, 0, 0, 0, time.UTC), out: &out}
	must(t, o.allowed(t.Context()))
	r, err := newRelease(t.Context(), o, dir)
	must(t, err)
	must(t, r.setVersions(t.Context()))
	must(t, r.install(t.Context()))
	aLockRequiresLittle(t, r)
	if os.Getenv("MENAGERIE_FULL") == "1" { // goreleaser takes five minutes to compile
		must(t, r.compareAPI(t.Context()))
		must(t, r.archive(t.Context()))
	}
	must(t, r.finish(t.Context(), filepath.Join(string(repo), "dist")))

	if status, tags := git(t, repo, "status", "--porcelain"), git(t, repo, "tag"); status != "" || tags != "" || git(t, repo, "rev-parse", "HEAD") != before {
		t.Errorf("the repository has changed: %s %s", status, tags)
	}
	publish := commandsIn(out.String())
	for _, module := range []string{"", "bench/", "cmd/menagerie/"} {
		if !strings.Contains(publish, `git tag -a -m "`+module+`v0.99.0" `+module+"v0.99.0 ") {
			t.Errorf("no tag of module %q: %s", module, publish)
		}
	}
	for _, module := range []string{"examples/", "interop/", "tools/"} {
		if strings.Contains(publish, " "+module) {
			t.Errorf("a tag of the internal module %q: %s", module, publish)
		}
	}
	origin := published(t, repo, publish)
	fromItsTag(t, origin)
}

// fromItsTag prepares the version again, from the commit of its tag, as the workflow does: nothing is left to change there.
func fromItsTag(t *testing.T, origin repository) {
	t.Helper()
	repo := repository(filepath.Join(t.TempDir(), "repo"))
	git(t, origin, "clone", "--quiet", "--branch", "v0.99.0", string(origin), string(repo))
	var out strings.Builder
	o := options{repository: repo, version: "v0.99.0", now: time.Now(), out: &out}
	must(t, o.allowed(t.Context()))
	r, err := newRelease(t.Context(), o, t.TempDir())
	must(t, err)
	must(t, r.setVersions(t.Context()))
	must(t, r.finish(t.Context(), t.TempDir()))
	if head := git(t, r.clone, "rev-parse", "HEAD"); head != git(t, repo, "rev-parse", "HEAD") || !strings.Contains(out.String(), "has its tags") {
		t.Errorf("another commit is above that of the tag: %s%s", git(t, r.clone, "show"), &out)
	}
}

// published runs the commands that were printed, and looks at what others get.
func published(t *testing.T, repo repository, commands string) (origin repository) {
	t.Helper()
	origin = repository(t.TempDir())
	git(t, origin, "init", "--quiet", "--bare")
	git(t, repo, "remote", "set-url", "origin", string(origin))
	c := exec.Command("sh", "-e", "-c", commands)
	c.Dir = string(repo)
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", commands, err, out)
	}
	const tag = "cmd/menagerie/v0.99.0"
	if text := git(t, origin, "show", tag+":CHANGELOG.md"); !strings.Contains(text, "\n## [0.99.0] - 2031-02-03\n") {
		t.Errorf("the changelog has no date: %.500s", text)
	}
	for file, line := range map[string]string{
		"cmd/menagerie/go.mod": ours + "/bench v0.99.0\n",
		"cmd/menagerie/go.sum": ours + " v0.99.0 h1:",
		"interop/go.mod":       ours + " v0.99.0\n",
		"go.work":              ours + "/bench v0.99.0 => ./bench",
	} {
		if text := git(t, origin, "show", tag+":"+file); !strings.Contains(text, line) {
			t.Errorf("%s does not have %q", file, line)
		}
	}
	return origin
}

// commandsIn are the indented lines.
func commandsIn(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if command, ok := strings.CutPrefix(line, "  git "); ok {
			lines = append(lines, "git "+command)
		}
	}
	return strings.Join(lines, "")
}

// A program that uses a lock builds with what the lock needs.
func aLockRequiresLittle(t *testing.T, r *release) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod":  "module example.com/user\n\ngo 1.26.0\n\nrequire " + ours + " " + r.version + "\n",
		"main.go": "package main\n\nimport \"" + ours + "/zksync\"\n\nfunc main() { _ = zksync.NewMutex(nil, \"/a\") }\n",
	})
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-o", os.DevNull, "."}} {
		if _, err := r.user.run(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.user.run(t.Context(), dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	must(t, err)
	for dep := range strings.FieldsSeq(got) {
		switch dep {
		case "example.com/user", ours, "github.com/go-zookeeper/zk", "golang.org/x/sync", "github.com/cenkalti/backoff/v4":
		default:
			t.Errorf("a user of zksync builds %s, too", dep)
		}
	}
}

// thisRepository is a clone of this one, with what is changed there, without its tags, and with a section for v0.99.0.
func thisRepository(t *testing.T) repository {
	t.Helper()
	here, err := filepath.Abs("../..")
	must(t, err)
	as := []string{"-c", "user.name=a", "-c", "user.email=a@b"}
	repo := repository(filepath.Join(t.TempDir(), "repo"))
	git(t, repository(here), "clone", "--quiet", "--shared", "--no-tags", here, string(repo))
	changes := filepath.Join(t.TempDir(), "changes")
	git(t, repository(here), "diff", "--binary", "--output="+changes, "HEAD")
	git(t, repo, "apply", "--allow-empty", changes)
	text, err := os.ReadFile(filepath.Join(string(repo), "CHANGELOG.md"))
	must(t, err)
	write(t, string(repo), map[string]string{"CHANGELOG.md": strings.Replace(string(text), "## [Unreleased]\n", "## [Unreleased]\n\n## [0.99.0] - unreleased\n\n### Added\n\n* a test\n", 1)})
	git(t, repo, append(as, "commit", "--quiet", "--all", "--message", "a section")...)
	return repo
}

func git(t *testing.T, r repository, args ...string) string {
	t.Helper()
	out, err := r.git(context.Background(), args...)
	must(t, err)
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
}
