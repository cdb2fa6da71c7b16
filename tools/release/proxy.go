package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// publish writes what a module proxy serves of one module, as it is in the newest commit of a clone, into a folder that the go
// command takes as a proxy (GOPROXY=file:///FOLDER): its versions, and of this one the go.mod and its files,
// among them the licence of the repository if the module has none of its own.
func publish(clone repository, m goModule, proxy, version string) (err error) {
	mod, err := os.ReadFile(filepath.Join(string(clone), filepath.FromSlash(m.dir), "go.mod"))
	if err != nil {
		return err
	}
	escaped, err := module.EscapePath(m.path)
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
	subdir := strings.TrimPrefix(m.dir, ".")
	if err := zip.CreateFromVCS(files, module.Version{Path: m.path, Version: version}, string(clone), "HEAD", subdir); err != nil {
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
