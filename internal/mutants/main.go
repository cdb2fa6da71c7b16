// Mutants breaks the code on purpose, in a copy, one patch at a time, and runs the test that must notice.
//
// A mutant is a file in this folder whose name ends in .patch. Above the patch stand two lines:
//
//	What: what is broken
//	Test: package name-of-the-test
//
// It fails if a test passes although the code is broken, if one fails although it is not, or if a patch no longer applies
// or compiles. Arguments pick the patches whose names contain one of them.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(".", "internal/mutants", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mutant is one patch.
type mutant struct {
	name, what string
	pkg, test  string
	file       string
}

// run plays the mutants of a folder against a copy of the repository at root.
func run(root, folder string, picked []string) error {
	all, err := read(filepath.Join(root, folder))
	if err != nil {
		return err
	}
	if len(picked) > 0 {
		all = slices.DeleteFunc(all, func(m mutant) bool {
			return !slices.ContainsFunc(picked, func(p string) bool { return strings.Contains(m.name, p) })
		})
	}
	if len(all) == 0 {
		return errors.New("no mutant has such a name")
	}
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := copyTree(work, root); err != nil {
		return err
	}
	if err := healthy(work, all); err != nil {
		return err
	}
	var alive []error
	for _, m := range all {
		if err := m.play(work); err != nil {
			fmt.Println("NOT KILLED", m.name)
			alive = append(alive, fmt.Errorf("%s: %w", m.name, err))
			continue
		}
		fmt.Println("killed", m.name, "by", m.test)
	}
	return errors.Join(alive...)
}

// copyTree copies what is compiled and tested.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		switch {
		case err != nil || relErr != nil:
			return errors.Join(err, relErr)
		case d.Name() == ".git" && !d.IsDir(): // that of a linked work tree
			return nil
		case d.Name() == ".git" || d.Name() == "bin":
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		case !d.Type().IsRegular():
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o666)
	})
}

// read reads the heads of all patches of a folder.
func read(folder string) (all []mutant, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(f), ".patch")}
		if m.file, err = filepath.Abs(f); err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if what, ok := strings.CutPrefix(line, "What: "); ok {
				m.what = strings.TrimSpace(what)
			}
			if test, ok := strings.CutPrefix(line, "Test: "); ok {
				m.pkg, m.test, _ = strings.Cut(strings.TrimSpace(test), " ")
			}
		}
		if m.what == "" || m.test == "" {
			return nil, fmt.Errorf("%s: above a patch stand the lines \"What: ...\" and \"Test: ./package TestName\"", f)
		}
		all = append(all, m)
	}
	return all, nil
}

// healthy runs the tests of all mutants on the code as it is: each must be there, and pass.
func healthy(work string, all []mutant) error {
	tests := make(map[string][]string)
	for _, m := range all {
		tests[m.pkg] = append(tests[m.pkg], m.test)
	}
	for pkg, names := range tests {
		out, err := goTest(work, pkg, names...)
		if err != nil {
			return fmt.Errorf("a test fails although nothing is broken: %w\n%s", err, out)
		}
		for _, name := range names {
			if !bytes.Contains(out, []byte("--- PASS: "+name+" ")) {
				return fmt.Errorf("%s has no %s that runs", pkg, name)
			}
		}
	}
	return nil
}

// play breaks the copy, runs the test, and mends the copy. It returns why the mutant lives.
func (m mutant) play(work string) error {
	if err := apply(work, m.file); err != nil {
		return err
	}
	defer func() { _ = apply(work, m.file, "--reverse") }()
	out, err := goTest(work, m.pkg, m.test)
	switch {
	case err == nil:
		return fmt.Errorf("%s passes although %s", m.test, m.what)
	case bytes.Contains(out, []byte("[build failed]")):
		return fmt.Errorf("it does not compile: %s", out)
	}
	return nil
}

func apply(work, patch string, how ...string) error {
	if out, err := command(work, "git", append([]string{"apply", "-C1"}, append(how, patch)...)...); err != nil {
		return fmt.Errorf("the patch does not apply any more: %s", out)
	}
	return nil
}

func goTest(work, pkg string, names ...string) ([]byte, error) {
	return command(work, "go", "test", "-vet=off", "-count=1", "-v", "-timeout=3m", "-run=^("+strings.Join(names, "|")+")$", pkg)
}

func command(dir, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "RAPID_SEED=1")
	return c.CombinedOutput()
}
