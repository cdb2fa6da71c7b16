package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A release is a version that is being prepared in a clone.
type release struct {
	options
	clone     repository
	base      string // the commit that is released
	tagged    bool   // it has the tags already
	modules   *workspace
	user      goCommand
	home      string // of the user
	proxy     string // where the user gets our modules from
	collected string // what becomes dist
	dir       string // for everything else
	section   string // of the changelog
}

// newRelease clones the repository into a folder below dir.
func newRelease(ctx context.Context, o options, dir string) (*release, error) {
	from, err := filepath.Abs(string(o.repository))
	if err != nil {
		return nil, err
	}
	r := &release{options: o, dir: dir, home: filepath.Join(dir, "home"), proxy: filepath.Join(dir, "proxy"), collected: filepath.Join(dir, "dist")}
	for _, name := range []string{r.home, r.proxy, r.collected} {
		if err := os.Mkdir(name, 0o755); err != nil {
			return nil, err
		}
	}
	r.clone = repository(filepath.Join(dir, "clone"))
	if _, err := o.repository.git(ctx, "clone", "--quiet", "--shared", from, string(r.clone)); err != nil {
		return nil, err
	}
	if r.base, err = r.clone.git(ctx, "rev-parse", "HEAD"); err != nil {
		return nil, err
	}
	if r.modules, err = readWorkspace(string(r.clone)); err != nil {
		return nil, err
	}
	if err := r.free(ctx); err != nil {
		return nil, err
	}
	r.user, err = asUser(ctx, r.home, r.proxy)
	return r, err
}

// free fails if another commit has one of the tags. If this one has all of them, the version is published already, and only its
// archives are made again.
func (r *release) free(ctx context.Context) error {
	r.tagged = true
	for _, m := range r.modules.released {
		tag := m.tag(r.version)
		commit, err := r.clone.git(ctx, "rev-parse", "--verify", "--quiet", "refs/tags/"+tag+"^{commit}")
		if err != nil {
			r.tagged = false // there is no such tag
			continue
		}
		if commit != r.base {
			return fmt.Errorf("%s is a tag of commit %.12s already: release the next version, or check that commit out to make its archives again", tag, commit)
		}
	}
	return nil
}

// setVersions dates the changelog, lets the modules require each other at the version, and tags the result, all in the clone.
func (r *release) setVersions(ctx context.Context) error {
	name := filepath.Join(string(r.clone), "CHANGELOG.md")
	changelog, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text := dated(string(changelog), r.version, r.now.UTC().Format("2006-01-02"))
	if r.section, err = sectionOf(text, r.version); err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return err
	}
	if err := r.modules.require(r.version); err != nil {
		return err
	}
	for _, m := range r.modules.released {
		if err := r.modules.tidy(ctx, r.user, m); err != nil {
			return err
		}
		if err := r.commit(ctx); err != nil {
			return err
		}
		if err := publish(r.clone, m, r.proxy, r.version); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	for _, m := range r.modules.released {
		if _, err := r.clone.git(ctx, "tag", "--force", m.tag(r.version)); err != nil {
			return err
		}
	}
	return nil
}

// commit puts all changes of the clone into one commit above the repository's. There are none if HEAD is the release itself.
func (r *release) commit(ctx context.Context) error {
	status, err := r.clone.git(ctx, "status", "--porcelain")
	if err != nil || status == "" {
		return err
	}
	args := []string{"-c", "commit.gpgSign=false"}
	for key, format := range map[string]string{"user.name": "%an", "user.email": "%ae"} {
		// An empty home names no user: then it is the author of the commit that is released.
		configured, _ := r.repository.git(ctx, "config", key)
		author, err := r.repository.git(ctx, "log", "-1", "--format="+format)
		if err != nil {
			return err
		}
		args = append(args, "-c", key+"="+cmp.Or(configured, author))
	}
	args = append(args, "commit", "--quiet", "--all", "--no-verify", "--message", "release: "+r.version)
	head, err := r.clone.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if head != r.base {
		args = append(args, "--amend")
	}
	_, err = r.clone.git(ctx, args...)
	return err
}

// lintAndTest runs what every change must pass on the commit that gets the tags.
func (r *release) lintAndTest(ctx context.Context) error {
	c := exec.CommandContext(ctx, "make", "-C", string(r.clone), "lint", "test")
	c.Stdout, c.Stderr = r.out, r.out
	// A test that cannot run is a failure here, not a skip.
	c.Env = append(os.Environ(), "CI=true", "MAKEFLAGS=", "MAKELEVEL=")
	last, err := r.clone.lastTag(ctx, goModule{dir: "."}, r.version)
	if err != nil {
		return err
	}
	if last != "" {
		c.Env = append(c.Env, "MENAGERIE_UPGRADE_FROM="+last) // contends with this version on the same paths
	}
	return c.Run()
}

// install installs the command as a user does, and asks it for its version.
func (r *release) install(ctx context.Context) error {
	if err := r.sameFromGit(ctx); err != nil {
		return err
	}
	if _, err := r.user.run(ctx, r.home, "install", ours+"/cmd/menagerie@"+r.version); err != nil {
		return err
	}
	return r.saysItsVersion(ctx, filepath.Join(r.home, "go", "bin", "menagerie"), "")
}

// saysItsVersion fails unless a program that was built says that it is of this version, and of this commit.
func (r *release) saysItsVersion(ctx context.Context, program, commit string) error {
	text, err := output(exec.CommandContext(ctx, program, "version", "--json"))
	if err != nil {
		return err
	}
	var build struct {
		Version, Commit string
		Modified        bool
	}
	if err := json.Unmarshal([]byte(text), &build); err != nil {
		return err
	}
	if build.Version != r.version || build.Commit != commit || build.Modified {
		return fmt.Errorf("menagerie version says %s, want %s of commit %q", text, r.version, commit)
	}
	fmt.Fprintf(r.out, "%s version: %s\n", filepath.Base(program), build.Version)
	return nil
}

// sameFromGit checks that the tags give the very modules that are tested here: what Go fetches from git by itself has the
// hashes that are in the go.sum of those who require it.
func (r *release) sameFromGit(ctx context.Context) error {
	fromGit := r.user.with("GOPROXY=direct", "GOMODCACHE="+filepath.Join(r.dir, "fromgit"),
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+fileURL(string(r.clone))+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+ours)
	for _, m := range r.modules.released {
		var sums []struct{ Sum, GoModSum string }
		for _, g := range []goCommand{r.user, fromGit} {
			text, err := g.run(ctx, r.home, "mod", "download", "-json", m.path+"@"+r.version)
			if err != nil {
				return err
			}
			var downloaded struct{ Sum, GoModSum string }
			if err := json.Unmarshal([]byte(text), &downloaded); err != nil {
				return err
			}
			sums = append(sums, downloaded)
		}
		if sums[0] != sums[1] {
			return fmt.Errorf("%s: the tag gives %v, but %v was tested", m.path, sums[1], sums[0])
		}
	}
	return nil
}

// compareAPI compares what the modules export with their last tags, where incompatible changes must be announced.
func (r *release) compareAPI(ctx context.Context) error {
	program, err := r.tool(ctx, apidiff)
	if err != nil {
		return err
	}
	return r.compareWith(ctx, program)
}

func (r *release) compareWith(ctx context.Context, program string) error {
	dir := filepath.Join(r.collected, "api")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	a := apiCheck{clone: r.clone, program: program, dir: dir, env: append(os.Environ(), "GOWORK=")}
	var reports, bad []string
	for _, m := range r.modules.released {
		report, incompatible, err := a.compare(ctx, m, r.version)
		if err != nil {
			return err
		}
		reports = append(reports, report)
		if incompatible != "" {
			bad = append(bad, m.path+":\n"+incompatible)
		}
	}
	text := strings.Join(reports, "\n") + "\n"
	fmt.Fprint(r.out, text)
	if err := os.WriteFile(filepath.Join(dir, "changes.txt"), []byte(text), 0o644); err != nil {
		return err
	}
	return judge(r.version, r.section, strings.Join(bad, "\n"))
}

// judge fails if a version may not have the incompatible changes, or does not announce them.
func judge(version, section, incompatible string) error {
	switch {
	case incompatible == "":
		return nil
	case !mayBreak(version):
		return fmt.Errorf("%s has incompatible changes, and its number says that it has none: undo them, or release the next %s\n%s", version, nextBreaking(version), incompatible)
	case !breaking.MatchString(section):
		return fmt.Errorf("%s has incompatible changes: its section of CHANGELOG.md must say what users change, below \"### Changed\" or \"### Removed\"\n%s", version, incompatible)
	}
	return nil
}
