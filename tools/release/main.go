// Command release prepares a version of the modules of this repository, in a clone of it, and prints the commands that publish it:
//
//	release -version v0.1.0
//
// Nothing is tagged or pushed, and the work tree stays as it is but for the folder dist, which gets what is to be published.
// docs/releasing.md has the steps.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

// ours is the beginning of the paths of our modules.
const ours = "github.com/go-menagerie/menagerie"

func main() {
	version := flag.String("version", "", "the `version`, such as v0.1.0")
	check := flag.Bool("check", true, "run make lint test")
	archives := flag.Bool("archives", true, "compare the API with the last tag's, and make archives and SBOMs; the tools for it take minutes to compile")
	list := flag.Bool("list", false, "print the folders of the modules that are released, and do nothing")
	flag.Parse()
	if *list {
		listModules()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, options{repository: ".", version: *version, check: *check, archives: *archives, now: time.Now(), out: os.Stdout}); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func listModules() {
	w, err := readWorkspace(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, m := range w.released {
		fmt.Println(m.dir)
	}
}

type options struct {
	repository      repository
	version         string
	check, archives bool
	now             time.Time
	out             io.Writer
}

// run prepares a version in a temporary clone.
func run(ctx context.Context, o options) (err error) {
	if err := o.allowed(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, err := newRelease(ctx, o, dir)
	if err != nil {
		return err
	}
	steps := []struct {
		name string
		done bool // or left out
		do   func(context.Context) error
	}{
		{"versions", true, r.setVersions},
		{"tests (make lint test)", o.check, r.lintAndTest},
		{"install, in an empty home", true, r.install},
		{"API, beside the last tag", o.archives, r.compareAPI},
		{"archives and SBOMs", o.archives, r.archive},
	}
	for _, step := range steps {
		if !step.done {
			fmt.Fprintf(o.out, "--  %s: left out\n", step.name)
			continue
		}
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(o.out, "ok  %s (%v)\n", step.name, time.Since(start).Round(time.Second))
	}
	return r.finish(ctx, filepath.Join(string(o.repository), "dist"))
}
