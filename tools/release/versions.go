package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// require lets all modules that go.work uses require the released ones at version.
func (w *workspace) require(version string) error {
	for _, m := range slices.Concat(w.released, w.internal) {
		if err := w.requireIn(m, version); err != nil {
			return err
		}
	}
	return w.replace(version)
}

func (w *workspace) requireIn(m goModule, version string) error {
	dir := w.folder(m)
	f, err := readMod(dir)
	if err != nil {
		return err
	}
	if len(f.Replace) > 0 {
		return fmt.Errorf("%s/go.mod replaces %s, which holds for nobody who installs the module: put the replacement into go.work", m.dir, f.Replace[0].Old.Path)
	}
	for _, other := range w.released {
		if !slices.Contains(m.needs, other.path) {
			continue
		}
		if err := f.AddRequire(other.path, version); err != nil {
			return err
		}
	}
	text, err := f.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o644)
}

// folder is where the files of a module are.
func (w *workspace) folder(m goModule) string {
	return filepath.Join(w.dir, filepath.FromSlash(m.dir))
}

// replace lets go.work replace the new version, which no proxy has yet, by the folder that it is in.
func (w *workspace) replace(version string) error {
	name := filepath.Join(w.dir, "go.work")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(name, data, nil)
	if err != nil {
		return err
	}
	for _, pointer := range slices.Clone(work.Replace) {
		r := *pointer // DropReplace clears it
		if !slices.ContainsFunc(w.released, func(m goModule) bool { return m.path == r.Old.Path }) {
			continue
		}
		if err := errors.Join(work.DropReplace(r.Old.Path, r.Old.Version), work.AddReplace(r.Old.Path, version, r.New.Path, "")); err != nil {
			return err
		}
	}
	work.Cleanup()
	return os.WriteFile(name, modfile.Format(work.Syntax), 0o644)
}

// tidy adds the hashes of our own modules to go.sum, and fails if "go mod tidy" changes anything else.
func (w *workspace) tidy(ctx context.Context, g goCommand, m goModule) error {
	dir := w.folder(m)
	mod, sum, err := modAndSum(dir)
	if err != nil {
		return err
	}
	if _, err := g.run(ctx, dir, "mod", "tidy"); err != nil {
		return err
	}
	newMod, newSum, err := modAndSum(dir)
	if err != nil {
		return err
	}
	var changes []string
	changes = append(changes, changed("go.mod", mod, newMod)...)
	for _, c := range changed("go.sum", sum, newSum) {
		if !slices.ContainsFunc(w.released, func(other goModule) bool { return strings.Contains(c, " "+other.path+" v") }) {
			changes = append(changes, c)
		}
	}
	if len(changes) > 0 {
		return fmt.Errorf("%s: go mod tidy changes this; commit it, then release again:\n%s", m.dir, strings.Join(changes, "\n"))
	}
	return nil
}

// modAndSum reads both files; a module that requires nothing has no go.sum.
func modAndSum(dir string) (mod, sum []byte, err error) {
	mod, err = os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, nil, err
	}
	sum, err = os.ReadFile(filepath.Join(dir, "go.sum"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return mod, sum, err
}

// changed lists the lines that only one of two texts has.
func changed(name string, old, now []byte) (lines []string) {
	only := func(a, b []byte, sign string) {
		there := make(map[string]bool)
		for l := range bytes.Lines(b) {
			there[string(l)] = true
		}
		for l := range bytes.Lines(a) {
			if !there[string(l)] {
				lines = append(lines, fmt.Sprintf("  %s %s %s", name, sign, strings.TrimSpace(string(l))))
			}
		}
	}
	only(old, now, "-")
	only(now, old, "+")
	return lines
}

// fileURL is what GOPROXY takes for a folder.
func fileURL(dir string) string { return "file://" + filepath.ToSlash(dir) }
