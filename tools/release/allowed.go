package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// allowed fails, with the fix, if the repository is not in order for this version.
func (o options) allowed(ctx context.Context) error {
	if err := wellFormed(o.version); err != nil {
		return err
	}
	if _, err := o.repository.git(ctx, "rev-parse", "--git-dir"); err != nil {
		return fmt.Errorf("this is not a clone: run it in one (git clone): %w", err)
	}
	status, err := o.repository.git(ctx, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("the tree has changes that are not committed; commit them, or put them away with \"git stash -u\":\n%s", status)
	}
	changelog, err := os.ReadFile(filepath.Join(string(o.repository), "CHANGELOG.md"))
	if err != nil {
		return err
	}
	_, err = sectionOf(string(changelog), o.version)
	return err
}

// wellFormed fails unless version can be that of a Go module.
func wellFormed(version string) error {
	switch {
	case version == "":
		return fmt.Errorf("which version? make release VERSION=v0.1.0")
	case semver.Canonical(version) == version:
		return nil
	}
	fix := "a version is vMAJOR.MINOR.PATCH, perhaps with -rc.1 behind it"
	if guess := semver.Canonical("v" + strings.TrimPrefix(version, "v")); guess != "" {
		fix += ": make release VERSION=" + guess
	}
	return fmt.Errorf("VERSION=%s: %s", version, fix)
}
