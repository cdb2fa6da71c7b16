package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// The tools, compiled when they are needed. They are in no go.mod, so that the developers of locks do not pay for what goreleaser
// requires; Go's checksum database vouches for them.
const (
	apidiff    = "golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4"
	cyclonedx  = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"
	goreleaser = "github.com/goreleaser/goreleaser/v2@v2.16.0"
)

// tool compiles a tool and returns the name of the program.
func (r *release) tool(ctx context.Context, pinned string) (string, error) {
	bin := filepath.Join(r.dir, "bin")
	g := goCommand{append(os.Environ(), "GOBIN="+bin, "GOWORK=off")}
	if _, err := g.run(ctx, r.dir, "install", pinned); err != nil {
		return "", err
	}
	name, _, _ := strings.Cut(pinned, "@")
	return filepath.Join(bin, path.Base(strings.TrimSuffix(name, "/v2"))), nil
}

// archive makes the archives of the command for each system, and a list of what is in each binary.
func (r *release) archive(ctx context.Context) error {
	if _, err := r.tool(ctx, cyclonedx); err != nil {
		return err
	}
	program, err := r.tool(ctx, goreleaser)
	if err != nil {
		return err
	}
	// The builds are like those of "go install": of the modules from the proxy, with no flags of this user.
	g := r.user.with("GOFLAGS=-modcacherw", "GORELEASER_CURRENT_TAG="+r.version, "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	c := exec.CommandContext(ctx, program, "release", "--snapshot", "--clean", "--skip=publish")
	c.Dir, c.Env, c.Stdout, c.Stderr = string(r.clone), g.env, r.out, r.out
	if err := c.Run(); err != nil {
		return err
	}
	made := filepath.Join(string(r.clone), "dist")
	if err := r.tryBuilt(ctx, made); err != nil {
		return err
	}
	return r.collect(made)
}

// tryBuilt asks the program for this system for its version.
func (r *release) tryBuilt(ctx context.Context, dir string) error {
	commit, err := r.clone.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	programs, err := filepath.Glob(filepath.Join(dir, "menagerie_"+runtime.GOOS+"_"+runtime.GOARCH+"*", "menagerie*"))
	if err != nil {
		return err
	}
	for _, program := range programs {
		if err := r.saysItsVersion(ctx, program, commit); err != nil {
			return err
		}
	}
	return nil
}

// collect takes what users download, and leaves goreleaser's own notes.
func (r *release) collect(dir string) error {
	for _, pattern := range []string{"*.tar.gz", "*.zip", "*.cdx.json", "checksums.txt"} {
		names, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return fmt.Errorf("goreleaser has made no %s", pattern)
		}
		for _, name := range names {
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(r.collected, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
