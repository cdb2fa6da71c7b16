// Fileproxy writes modules of this repository into a folder that the go command takes as a module proxy
// (GOPROXY=file:///FOLDER), as they are in the work tree. So it can be tried what a user gets who installs a version that is
// not published yet:
//
//	fileproxy REPOSITORY FOLDER VERSION [MODULE ...]
//
// A module is named by its folder in the repository, "." for the root. It must require the others at VERSION.
package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: fileproxy REPOSITORY FOLDER VERSION MODULE ...")
		os.Exit(2)
	}
	for _, m := range os.Args[4:] {
		if err := publish(filepath.Join(os.Args[1], m), os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintf(os.Stderr, "fileproxy: module %s: %v\n", m, err)
			os.Exit(1)
		}
	}
}

// publish writes what a proxy serves of one module: its versions, and of this one the go.mod, when it was made, and its files.
func publish(dir, proxy, version string) (err error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	name := modfile.ModulePath(mod)
	escaped, err := module.EscapePath(name)
	if err != nil {
		return err
	}
	at := filepath.Join(proxy, filepath.FromSlash(path.Join(escaped, "@v")))
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	files, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	if err := zip.CreateFromDir(files, module.Version{Path: name, Version: version}, dir); err != nil {
		return err
	}
	for file, text := range map[string]string{
		"list":            version + "\n",
		version + ".mod":  string(mod),
		version + ".info": fmt.Sprintf(`{"Version":%q}`, version),
	} {
		if err := os.WriteFile(filepath.Join(at, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
