package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// finish leaves in dist what was made, and the commit, and prints the commands that publish the version.
func (r *release) finish(ctx context.Context, dist string) error {
	commit, err := r.clone.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	// The heading is the title of the release.
	_, notes, _ := strings.Cut(r.section, "\n")
	if err := os.WriteFile(filepath.Join(r.collected, "notes.md"), []byte(strings.TrimSpace(notes)+"\n"), 0o644); err != nil {
		return err
	}
	if commit != r.base {
		if _, err := r.clone.git(ctx, "bundle", "create", "--quiet", filepath.Join(r.collected, "commit.bundle"), r.base+"..HEAD"); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.CopyFS(dist, os.DirFS(r.collected)); err != nil {
		return err
	}
	fmt.Fprint(r.out, r.commands(commit))
	return nil
}

// commands are those that publish the version. The modules that require others come last, so that no proxy asks for a tag that
// is not there yet.
func (r *release) commands(commit string) string {
	if r.tagged {
		return fmt.Sprintf("\n%s has its tags, at this commit. dist has what belongs to it.\n", r.version)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s is prepared, and nothing is published. dist has all of it. These commands publish it:\n\n", r.version)
	if commit != r.base {
		fmt.Fprintf(&b, "  git fetch dist/commit.bundle HEAD        # commit %.12s, above %.12s: the versions and the date\n", commit, r.base)
	}
	var tags []string
	for _, m := range r.modules.released {
		tag := m.tag(r.version)
		tags = append(tags, tag)
		fmt.Fprintf(&b, "  git tag -a -m %q %s %s\n", tag, tag, commit)
	}
	fmt.Fprintf(&b, "  git push --atomic origin %s\n", strings.Join(tags, " "))
	return b.String()
}
