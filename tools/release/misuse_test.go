package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// small is a repository with two modules that are released, and one that is not.
var small = map[string]string{
	"go.mod":           "module " + ours + "\n\ngo 1.26.0\n",
	"a/a.go":           "// Package a is a test.\npackage a\n\n// F does nothing.\nfunc F(int) {}\n",
	"part/go.mod":      "module " + ours + "/part\n\ngo 1.26.0\n\nrequire " + ours + " v0.0.0\n",
	"part/part.go":     "// Package part is a test.\npackage part\n\nimport \"" + ours + "/a\"\n\n// G does nothing.\nfunc G() { a.F(1) }\n",
	"internal/go.mod":  mark + " for a test.\nmodule " + ours + "/internal\n\ngo 1.26.0\n",
	"go.work":          "go 1.26.0\n\nuse (\n\t.\n\t./internal\n\t./part\n)\n\nreplace " + ours + " v0.0.0 => .\n",
	"CHANGELOG.md":     "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - unreleased\n\n### Added\n\n* more\n\n## [0.1.1] - 2030-01-02\n\n### Added\n\n* a fix\n\n## [0.1.0] - 2030-01-01\n\n### Added\n\n* all\n",
	"LICENSE":          "none\n",
	"testdata/go.mod":  "module example.com/none\n",
	"a/testdata/a.txt": "",
}

func smallRepository(t *testing.T, more map[string]string) repository {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, small)
	write(t, dir, more)
	repo := repository(dir)
	git(t, repo, "init", "--quiet", "--initial-branch=main")
	git(t, repo, "config", "user.name", "a")
	git(t, repo, "config", "user.email", "a@b")
	commit(t, repo)
	return repo
}

func commit(t *testing.T, repo repository) {
	t.Helper()
	git(t, repo, "add", "--all")
	git(t, repo, "commit", "--quiet", "--message", "more")
}

func TestAMisuseNamesTheFix(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version string
		files   map[string]string
		after   func(*testing.T, repository)
		want    string
	}{
		"no version":         {version: "", want: "make release VERSION=v0.1.0"},
		"no v":               {version: "1.0", want: "make release VERSION=v1.0.0"},
		"a word":             {version: "next", want: "vMAJOR.MINOR.PATCH"},
		"a build":            {version: "v0.1.0+b", want: "make release VERSION=v0.1.0"},
		"a changed file":     {version: "v0.1.0", after: func(t *testing.T, r repository) { write(t, string(r), map[string]string{"a/a.go": "package a\n"}) }, want: "git stash -u\":\n M a/a.go"},
		"a new file":         {version: "v0.1.0", after: func(t *testing.T, r repository) { write(t, string(r), map[string]string{"b.go": "package b\n"}) }, want: "?? b.go"},
		"no section":         {version: "v0.3.0", want: `rename "## [Unreleased]" to "## [0.3.0] - unreleased"`},
		"a section of a tag": {version: "v0.1.0", files: map[string]string{"CHANGELOG.md": "## [0.1.0]\n* a\n"}, want: `write "## [0.1.0] - YYYY-MM-DD"`},
		"an empty section":   {version: "v0.1.0", files: map[string]string{"CHANGELOG.md": "## [0.1.0] - unreleased\n\n## [0.0.9] - 2030-01-01\n* a\n"}, want: "is empty"},
		"a tag of another commit": {version: "v0.1.0", after: func(t *testing.T, r repository) {
			git(t, r, "tag", "part/v0.1.0")
			write(t, string(r), map[string]string{"b.go": "package b\n"})
			commit(t, r)
		}, want: "part/v0.1.0 is a tag of commit "},
		"a module that is not used": {version: "v0.1.0", files: map[string]string{"new/go.mod": "module " + ours + "/new\n"}, want: `new/go.mod: go.work does not use this module, so it cannot be released: add it to go.work, or put the line "` + mark},
		"a required internal module": {version: "v0.1.0", files: map[string]string{"go.mod": "module " + ours + "\n\ngo 1.26.0\n\nrequire " + ours + "/internal v0.0.0\n"},
			want: "marked as internal"},
		"a replacement":    {version: "v0.1.0", files: map[string]string{"part/go.mod": small["part/go.mod"] + "\nreplace " + ours + " => ..\n"}, want: "put the replacement into go.work"},
		"an untidy module": {version: "v0.1.0", files: map[string]string{"part/part.go": "// Package part is a test.\npackage part\n"}, want: "go.mod - require " + ours},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := smallRepository(t, c.files)
			if c.after != nil {
				c.after(t, repo)
			}
			err := run(t.Context(), options{repository: repo, version: c.version, now: time.Now(), out: io.Discard})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v does not have %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(string(repo), "dist")); err == nil {
				t.Error("there is a dist all the same")
			}
		})
	}
}

// The last tag is of v0.1.0; the next versions take a parameter away.
func TestIncompatibleChangesAreFoundAndMustBeAnnounced(t *testing.T) {
	t.Parallel()
	r := &release{options: options{repository: smallRepository(t, nil)}, dir: t.TempDir()}
	program, err := r.tool(t.Context(), apidiff)
	must(t, err)
	first, text := compared(t, r.repository, program, "v0.1.0")
	must(t, first)
	if !strings.Contains(text, ours+": there is no earlier tag, so nothing is compared") {
		t.Error(text)
	}
	git(t, r.repository, "tag", "v0.1.0")
	git(t, r.repository, "tag", "part/v0.1.0")
	write(t, string(r.repository), map[string]string{"a/b.go": "package a\n\n// H does nothing.\nfunc H() {}\n"})
	commit(t, r.repository)
	compatible, text := compared(t, r.repository, program, "v0.1.1")
	must(t, compatible)
	if !strings.Contains(text, ours+" since v0.1.0:") || !strings.Contains(text, "H: added") {
		t.Error(text)
	}
	write(t, string(r.repository), map[string]string{"a/a.go": "package a\n\nfunc F() {}\n", "part/part.go": strings.Replace(small["part/part.go"], "F(1)", "F()", 1)})
	commit(t, r.repository)
	for version, want := range map[string]string{
		"v0.1.1": "undo them, or release the next v0.2.0\n" + ours,
		"v0.2.0": `below "### Changed" or "### Removed"`,
	} {
		err, _ := compared(t, r.repository, program, version)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "F: changed from func(int) to func()") {
			t.Errorf("%s: %v does not have %q", version, err, want)
		}
	}
	changelog := strings.Replace(small["CHANGELOG.md"], "### Added\n\n* more", "### Changed\n\n* F takes nothing", 1)
	write(t, string(r.repository), map[string]string{"CHANGELOG.md": changelog})
	commit(t, r.repository)
	announced, _ := compared(t, r.repository, program, "v0.2.0")
	must(t, announced)
}

// compared is what comparing with the last tag gives, as a release does it.
func compared(t *testing.T, repo repository, apidiff, version string) (err error, printed string) {
	t.Helper()
	var out strings.Builder
	r, err := newRelease(context.Background(), options{repository: repo, version: version, now: time.Now(), out: &out}, t.TempDir())
	must(t, err)
	must(t, r.setVersions(context.Background()))
	return r.compareWith(context.Background(), apidiff), out.String()
}

func TestVersionsThatMayBreak(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"v0.1.0": true, "v0.1.1": false, "v0.10.0": true, "v0.2.0-rc.1": true, "v1.0.0": true, "v1.1.0": false, "v1.1.1": false, "v2.0.0": true, "v2.10.0": false,
	} {
		if mayBreak(version) != want {
			t.Errorf("%s: %t", version, !want)
		}
	}
}

func TestATagThatGivesOtherFilesThanThoseTestedIsFound(t *testing.T) {
	t.Parallel()
	r, err := newRelease(t.Context(), options{repository: smallRepository(t, nil), version: "v0.1.0", now: time.Now(), out: io.Discard}, t.TempDir())
	must(t, err)
	must(t, r.setVersions(t.Context()))
	must(t, r.sameFromGit(t.Context()))
	write(t, string(r.clone), map[string]string{"LICENSE": "another\n"}) // a module without a licence gets the repository's
	git(t, r.clone, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--all", "--message", "more")
	git(t, r.clone, "tag", "--force", "part/v0.1.0")
	must(t, os.RemoveAll(filepath.Join(r.dir, "fromgit")))
	if err := r.sameFromGit(t.Context()); err == nil || !strings.Contains(err.Error(), ours+"/part: the tag gives ") {
		t.Error(err)
	}
}

func TestAProgramMustSayItsVersion(t *testing.T) { // not beside others: a program that they start would hold the written file open
	r := &release{options: options{version: "v0.1.0", out: io.Discard}}
	program := filepath.Join(t.TempDir(), "menagerie")
	for build, fine := range map[string]bool{
		`{"version":"v0.1.0","commit":"abc","modified":false}`: true,
		`{"version":"v0.1.0","commit":"abc","modified":true}`:  false,
		`{"version":"v0.1.0","commit":"abd","modified":false}`: false,
		`{"version":"devel","commit":"abc","modified":false}`:  false,
	} {
		must(t, os.WriteFile(program, []byte("#!/bin/sh\necho '"+build+"'\n"), 0o755))
		if err := r.saysItsVersion(t.Context(), program, "abc"); (err == nil) != fine {
			t.Errorf("%s: %v", build, err)
		}
	}
}
