// Mutants breaks the code on purpose, in a copy, one patch at a time, and runs the test that must notice.
//
// A mutant is a file in this folder whose name ends in .patch; it changes one file. Above the patch stand two lines:
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
	if err := run(".", "internal/testing/mutants", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mutant is one patch.
type mutant struct {
	name, what string
	pkg, test  string
	patch      string
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
		m := mutant{name: strings.TrimSuffix(filepath.Base(f), ".patch"), patch: string(text)}
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
	file, whole, broken, err := m.apply(work)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(broken), 0o666); err != nil {
		return err
	}
	defer func() { _ = os.WriteFile(file, []byte(whole), 0o666) }()
	out, err := goTest(work, m.pkg, m.test)
	switch {
	case err == nil:
		return fmt.Errorf("%s passes although %s", m.test, m.what)
	case bytes.Contains(out, []byte("[build failed]")):
		return fmt.Errorf("it does not compile: %s", out)
	}
	return nil
}

// apply returns the one file that the patch changes, as it is and as the patch makes it. Line numbers do not count: what a
// hunk replaces must be there exactly once.
func (m mutant) apply(root string) (file, whole, broken string, err error) {
	for hunk := range strings.SplitSeq(m.patch, "\n@@ ") {
		if file == "" {
			_, name, _ := strings.Cut(hunk, "\n+++ b/")
			file = filepath.Join(root, strings.TrimSpace(name))
			text, err := os.ReadFile(file)
			if err != nil {
				return "", "", "", fmt.Errorf("the patch does not apply any more: %w", err)
			}
			whole, broken = string(text), string(text)
			continue
		}
		var before, after strings.Builder
		_, body, _ := strings.Cut(hunk, "\n") // behind the line numbers
		for line := range strings.Lines(strings.TrimSuffix(body, "\n") + "\n") {
			if line == "\n" { // an editor took the blank of an empty line
				line = " \n"
			}
			if line[0] != '+' {
				before.WriteString(line[1:])
			}
			if line[0] != '-' {
				after.WriteString(line[1:])
			}
		}
		if strings.Count(broken, before.String()) != 1 {
			return "", "", "", fmt.Errorf("the patch does not apply any more: not once in %s:\n%s", file, before.String())
		}
		broken = strings.Replace(broken, before.String(), after.String(), 1)
	}
	return file, whole, broken, nil
}

func goTest(work, pkg string, names ...string) ([]byte, error) {
	c := exec.Command("go", "test", "-vet=off", "-count=1", "-v", "-timeout=3m", "-run=^("+strings.Join(names, "|")+")$", pkg)
	c.Dir = work
	c.Env = append(os.Environ(), "RAPID_SEED=1") // or chance would tell whether a mutant lives
	return c.CombinedOutput()
}
