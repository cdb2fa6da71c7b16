package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// mark is the line before "module" in the go.mod of a module that no version is made of.
const mark = "// Internal to this repository:"

// A goModule is a module of the repository.
type goModule struct {
	dir       string // in the repository, with slashes; "." is the root
	path      string
	internal  bool     // marked
	workspace bool     // go.work uses it
	needs     []string // the paths of the modules that it requires
}

// tag is the name of the tag of a version of the module.
func (m goModule) tag(version string) string { return path.Join(m.dir, version) }

// A workspace is the repository's modules. A release is of those that are not marked; each comes behind those that it requires.
type workspace struct {
	dir      string // of the repository
	released []goModule
	internal []goModule // those that go.work uses
}

// readWorkspace finds the modules of the repository at root.
func readWorkspace(root string) (*workspace, error) {
	used, err := usedBy(root)
	if err != nil {
		return nil, err
	}
	all, err := findModules(root)
	if err != nil {
		return nil, err
	}
	w := &workspace{dir: root}
	var left []goModule
	for _, m := range all {
		m.workspace = slices.Contains(used, m.dir)
		switch {
		case m.internal && m.workspace:
			w.internal = append(w.internal, m)
		case m.internal:
		case !m.workspace:
			return nil, fmt.Errorf("%s/go.mod: go.work does not use this module, so it cannot be released: add it to go.work, or put the line %q before its module line", m.dir, mark+" why")
		default:
			left = append(left, m)
		}
	}
	w.released, err = inOrder(left, w.internal)
	return w, err
}

func usedBy(root string) (dirs []string, err error) {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, err
	}
	for _, u := range work.Use {
		dirs = append(dirs, path.Clean(u.Path))
	}
	return dirs, nil
}

func findModules(root string) (all []goModule, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.Name() != "go.mod":
			return nil
		}
		m, err := readModule(root, filepath.Dir(name))
		all = append(all, m)
		return err
	})
	return all, err
}

func readModule(root, dir string) (goModule, error) {
	f, err := readMod(dir)
	if err != nil {
		return goModule{}, err
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return goModule{}, err
	}
	if f.Module == nil {
		return goModule{}, fmt.Errorf("%s has no module line", f.Syntax.Name)
	}
	m := goModule{dir: filepath.ToSlash(rel), path: f.Module.Mod.Path}
	for _, c := range f.Module.Syntax.Before {
		m.internal = m.internal || strings.HasPrefix(c.Token, mark)
	}
	for _, r := range f.Require {
		m.needs = append(m.needs, r.Mod.Path)
	}
	return m, nil
}

func readMod(dir string) (*modfile.File, error) {
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, data, nil)
}

// inOrder sorts modules so that each comes behind those that it requires. None may require an internal one.
func inOrder(left, internal []goModule) (sorted []goModule, err error) {
	for _, m := range left {
		for _, other := range internal {
			if slices.Contains(m.needs, other.path) {
				return nil, fmt.Errorf("%s/go.mod requires %s, which is marked as internal to this repository: remove the mark or the requirement", m.dir, other.path)
			}
		}
	}
	for len(left) > 0 {
		free := slices.IndexFunc(left, func(m goModule) bool {
			return !slices.ContainsFunc(left, func(other goModule) bool { return slices.Contains(m.needs, other.path) })
		})
		if free < 0 {
			return nil, fmt.Errorf("%s and other modules require each other in a circle: none can be tagged first", left[0].path)
		}
		sorted = append(sorted, left[free])
		left = slices.Delete(left, free, free+1)
	}
	return sorted, nil
}
