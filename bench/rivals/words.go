package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// number shows three digits, and thousands apart.
func number(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

func plural(word string, n int) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

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
