package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/go-menagerie/menagerie/bench"
)

//go:embed java/*.java python/*.py
var sources embed.FS

// jars is where Debian's packages put Curator and what it needs.
const jars = "/usr/share/java"

func curatorRival(ctx context.Context) (*rival, error) {
	if _, err := os.Stat(jars + "/curator-recipes.jar"); err != nil {
		return nil, missing("Curator", "libcurator-recipes-java")
	}
	if _, err := exec.LookPath("javac"); err != nil {
		return nil, missing("a Java compiler", "default-jdk-headless")
	}
	dir, err := unpack("java")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(dir + "/java/*.java")
	if err == nil {
		var out []byte
		out, err = exec.CommandContext(ctx, "javac", append([]string{"-cp", jars + "/*", "-nowarn", "-d", dir}, files...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	p := &foreign{name: "curator", cleanup: func() { _ = os.RemoveAll(dir) },
		argv: []string{"java", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off", "-cp", dir + ":" + jars + "/*", "Rival"},
		scenarios: []string{bench.Uncontended, bench.Async, bench.Contended, bench.Deep, bench.Crowd, bench.Many, bench.Queue, bench.Counter, bench.RWMutex, bench.Readers, bench.Semaphore,
			bench.Election, bench.Local, bench.Relock, bench.SharedReaders, bench.DoubleBarrier, bench.Gate}}
	java, _ := versionOf("java", "--version")
	return &rival{Peer: p, what: "the recipes of Apache Curator" + curatorVersion() + ", " + java}, nil
}

// curatorVersion reads it off the name of the jar that has it.
func curatorVersion() string {
	found, _ := filepath.Glob(jars + "/curator-recipes-[0-9]*.jar")
	if len(found) == 0 {
		return ""
	}
	var version string
	_, _ = fmt.Sscanf(filepath.Base(found[0]), "curator-recipes-%s", &version)
	return " " + version[:max(0, len(version)-len(".jar"))]
}

// kazooRival leaves its readers and writers out: with 16 readers and a writer all wait for ever.
func kazooRival(context.Context) (*rival, error) {
	python, version := "", ""
	for _, p := range []string{"python3", "/usr/bin/python3"} { // the first may be another than Debian's, without its packages
		if v, err := versionOf(p, "-c", "import kazoo; print(kazoo.__version__)"); err == nil {
			python, version = p, v
			break
		}
	}
	if python == "" {
		return nil, missing("kazoo", "python3-kazoo")
	}
	dir, err := unpack("python")
	if err != nil {
		return nil, err
	}
	p := &foreign{name: "kazoo", cleanup: func() { _ = os.RemoveAll(dir) }, argv: []string{python, dir + "/python/rival.py"},
		scenarios: []string{bench.Uncontended, bench.Async, bench.Contended, bench.Deep, bench.Crowd, bench.Queue, bench.Counter, bench.Semaphore, bench.Local, bench.Relock, bench.DoubleBarrier, bench.Gate}}
	name, _ := versionOf(python, "--version")
	return &rival{Peer: p, what: "the recipes of kazoo " + version + ", " + name}, nil
}

// unpack copies the sources in a language to a new directory.
func unpack(language string) (string, error) {
	dir, err := os.MkdirTemp("", "menagerie-rival-")
	if err != nil {
		return "", err
	}
	part, err := fs.Sub(sources, language)
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, language), part)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return dir, err
}
