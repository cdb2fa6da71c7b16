package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// lastTag returns the greatest version below version that module m has a tag of, or "".
func (r repository) lastTag(ctx context.Context, m goModule, version string) (last string, err error) {
	tags, err := r.git(ctx, "tag", "--list", m.tag("v*"))
	if err != nil {
		return "", err
	}
	for tag := range strings.FieldsSeq(tags) {
		v := strings.TrimPrefix(tag, strings.TrimSuffix(m.tag("v"), "v"))
		if semver.IsValid(v) && semver.Compare(v, version) < 0 && semver.Compare(v, last) > 0 {
			last = v
		}
	}
	return last, nil
}

// An apiCheck compares what modules export with what they exported at their last tag.
type apiCheck struct {
	clone   repository
	program string // apidiff
	dir     string // where the exports and the differences are written
	env     []string
}

// compare writes what m exports, and says how it differs from the last tag. Without a tag, incompatible is empty.
func (a apiCheck) compare(ctx context.Context, m goModule, version string) (report, incompatible string, err error) {
	name := strings.ReplaceAll(m.path, "/", "_")
	now := filepath.Join(a.dir, name+"_"+version+".export")
	if err := a.export(ctx, string(a.clone), m, now); err != nil {
		return "", "", err
	}
	last, err := a.clone.lastTag(ctx, m, version)
	if err != nil {
		return "", "", err
	}
	if last == "" {
		return fmt.Sprintf("%s: there is no earlier tag, so nothing is compared; %s has what it exports", m.path, filepath.Base(now)), "", nil
	}
	tree := filepath.Join(a.dir, "tree")
	if _, err := a.clone.git(ctx, "worktree", "add", "--quiet", "--detach", tree, m.tag(last)); err != nil {
		return "", "", err
	}
	defer func() {
		_, e := a.clone.git(context.WithoutCancel(ctx), "worktree", "remove", "--force", tree)
		err = errors.Join(err, e)
	}()
	old := filepath.Join(a.dir, name+"_"+last+".export")
	if err := a.export(ctx, tree, m, old); err != nil {
		return "", "", err
	}
	defer os.Remove(old)
	report, err = output(exec.CommandContext(ctx, a.program, "-m", old, now))
	if err != nil {
		return "", "", err
	}
	incompatible, err = output(exec.CommandContext(ctx, a.program, "-m", "-incompatible", old, now))
	return fmt.Sprintf("%s since %s:\n%s", m.path, last, report), incompatible, err
}

func (a apiCheck) export(ctx context.Context, tree string, m goModule, file string) error {
	c := exec.CommandContext(ctx, a.program, "-m", "-w", file, m.path)
	c.Dir, c.Env = filepath.Join(tree, filepath.FromSlash(m.dir)), a.env
	_, err := output(c)
	return err
}

// mayBreak says whether a version may have changes that break programs which use an earlier one: before v1 each v0.N.0, after
// that a new major version.
func mayBreak(version string) bool {
	number := strings.TrimSuffix(version, semver.Prerelease(version))
	if semver.Major(version) == "v0" {
		return strings.HasSuffix(number, ".0")
	}
	return strings.HasSuffix(number, ".0.0")
}

// nextBreaking is the next version that may break programs.
func nextBreaking(version string) string {
	var major, minor int
	fmt.Sscanf(version, "v%d.%d.", &major, &minor)
	if major == 0 {
		return fmt.Sprintf("v0.%d.0", minor+1)
	}
	return fmt.Sprintf("v%d.0.0", major+1)
}
