package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// output runs a program and returns what it prints. The error of a program that fails has all that it has printed.
func output(c *exec.Cmd) (string, error) {
	out, err := c.Output()
	if err != nil {
		text := out
		if exit := new(exec.ExitError); errors.As(err, &exit) {
			text = append(text, exit.Stderr...)
		}
		return "", fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, strings.TrimSpace(string(text)))
	}
	return strings.TrimRight(string(out), "\r\n"), nil
}

// A repository is a folder with a clone.
type repository string

func (r repository) git(ctx context.Context, args ...string) (string, error) {
	return output(exec.CommandContext(ctx, "git", append([]string{"-C", string(r)}, args...)...))
}

// A goCommand runs the go command with an environment of its own.
type goCommand struct{ env []string }

func (g goCommand) run(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Env, c.Dir = g.env, dir
	return output(c)
}

// with is a goCommand with further variables.
func (g goCommand) with(variables ...string) goCommand {
	return goCommand{append(g.env[:len(g.env):len(g.env)], variables...)}
}

// asUser is the go command of a user with an empty home: it gets our modules from proxy, and has none of them in its module cache.
// Only what is compiled is kept where this user keeps it (with -trimpath it does not depend on where the module cache is), and
// what others have published is taken from there.
func asUser(ctx context.Context, home, proxy string) (goCommand, error) {
	kept := make(map[string]string)
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "GOTOOLCHAIN"} {
		value, err := output(exec.CommandContext(ctx, "go", "env", name))
		if err != nil {
			return goCommand{}, err
		}
		kept[name] = value
	}
	downloaded := fileURL(filepath.Join(kept["GOMODCACHE"], "cache", "download"))
	return goCommand{append(os.Environ(),
		"HOME="+home, "USERPROFILE="+home, "GOPATH="+filepath.Join(home, "go"), "GOBIN=", "GOMODCACHE=", "GOENV=off", "GOWORK=off",
		"GOCACHE="+kept["GOCACHE"], "GOTOOLCHAIN="+kept["GOTOOLCHAIN"], "GOSUMDB="+kept["GOSUMDB"],
		"GOPROXY="+strings.Join([]string{fileURL(proxy), downloaded, kept["GOPROXY"]}, ","),
		"GONOSUMDB="+strings.Trim(kept["GONOSUMDB"]+","+ours, ","), "GOFLAGS="+kept["GOFLAGS"]+" -modcacherw -trimpath")}, nil
}
