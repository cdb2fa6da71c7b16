package main

import (
	"os/exec"
	"runtime"
	"strings"
)

func goVersion() string { return "Go " + strings.TrimPrefix(runtime.Version(), "go") }

// versionOf is the first line that a program prints about its version.
func versionOf(argv ...string) (string, error) {
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	return firstLine(string(out)), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

func firstWords(s string, n int) string {
	words := strings.Fields(s)
	return strings.Join(words[:min(n, len(words))], " ")
}
