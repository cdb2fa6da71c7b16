package docs

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	available  = regexp.MustCompile(`(?m)^  ([a-z]+) {2,}\S`)
	tableCell  = regexp.MustCompile("(?m)^\\| (\\[?`[^|]*) \\|")
	codeWord   = regexp.MustCompile("`([a-z]+)[^`]*`")
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	invocation = regexp.MustCompile(`\bmenagerie ([a-z]+)( [a-z]+\b)?`)
	flagName   = regexp.MustCompile(`(?:^|[\s([])(--[a-z][a-z-]*|-[a-z]+)\b`)
)

func TestTheTablesOfCommandsHaveThoseOfTheBinary(t *testing.T) {
	has := commandsOf(help(t, build(t)))
	for _, page := range []string{"cli.md", "commands.md"} {
		table, _, ok := strings.Cut(read(t, page), "\n## ")
		require.True(t, ok)
		listed := make(map[string]bool)
		for _, cell := range tableCell.FindAllStringSubmatch(table, -1) {
			for _, name := range codeWord.FindAllStringSubmatch(cell[1], -1) {
				require.False(t, listed[name[1]], "%s has %s twice", page, name[1])
				listed[name[1]] = true
			}
		}
		require.ElementsMatch(t, has, slices.Collect(maps.Keys(listed)), page)
	}
}

// aboutTheCommand are the pages that name flags of menagerie alone.
var aboutTheCommand = regexp.MustCompile(`^(\.\./README|cli|commands|control|ui|commands/.*)\.md$`)

func TestThePagesNameCommandsAndFlagsThatExist(t *testing.T) {
	binary := build(t)
	top := help(t, binary)
	commands, texts := commandsOf(top), map[string]string{"": top}
	for _, c := range commands {
		texts[c] = help(t, binary, c)
		for _, sub := range commandsOf(texts[c]) {
			texts[c+" "+sub] = help(t, binary, c, sub)
		}
	}
	known := flags(strings.Join(slices.Collect(maps.Values(texts)), "\n"))
	named := 0
	for page, code := range codeOfPages(t) {
		if strings.HasPrefix(page, "findings") {
			continue // it speaks of what was wrong
		}
		for _, line := range code {
			for _, part := range parts(line) {
				m := invocation.FindStringSubmatch(part)
				if m == nil {
					continue
				}
				named++
				assert.Contains(t, commands, m[1], "%s: %s", page, line)
				text, ok := texts[m[1]+m[2]]
				if !ok {
					text = texts[m[1]]
				}
				part, _, _ = strings.Cut(part, " -- ")
				part, _, _ = strings.Cut(part, " # ")
				assert.Subset(t, flags(text), flags(part), "%s: %s", page, line)
			}
			if strings.HasPrefix(line, "--") && aboutTheCommand.MatchString(page) {
				assert.Subset(t, known, flags(line), "%s: %s", page, line)
			}
		}
	}
	require.Greater(t, named, 150)
}

// codeOfPages returns the lines of the blocks of shells, and the spans of code, of each page.
func codeOfPages(t *testing.T) map[string][]string {
	all := make(map[string][]string)
	for _, b := range blocks(t) {
		switch b.lang {
		case "sh", "bash", "console", "text":
			all[b.page] = append(all[b.page], strings.Split(strings.ReplaceAll(b.text, "\\\n", ""), "\n")...)
		}
	}
	for _, page := range append(pages(t), "../README.md", "../CONTRIBUTING.md") {
		for _, s := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			all[page] = append(all[page], s[1])
		}
	}
	return all
}

// parts cuts a line in front of each call of the command.
func parts(line string) (all []string) {
	for {
		next := strings.Index(line[min(1, len(line)):], "menagerie ")
		if next < 0 {
			return append(all, line)
		}
		all, line = append(all, line[:next+1]), line[next+1:]
	}
}

func flags(text string) (names []string) {
	for _, m := range flagName.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

func commandsOf(text string) (names []string) {
	_, text, _ = strings.Cut(text, "\nAvailable Commands:\n")
	text, _, _ = strings.Cut(text, "\n\n")
	for _, m := range available.FindAllStringSubmatch(text, -1) {
		if m[1] != "help" {
			names = append(names, m[1])
		}
	}
	return names
}

func help(t *testing.T, binary string, args ...string) string {
	out, err := exec.Command(binary, append(args, "--help")...).Output()
	require.NoError(t, err, "%s --help", args)
	return string(out)
}

// built is the binary. It is in the folder that TestMain removes.
var built = struct {
	sync.Once
	folder string
	err    error
}{}

func build(t *testing.T) string {
	binary := filepath.Join(built.folder, "menagerie")
	built.Do(func() {
		var out []byte
		out, built.err = exec.Command("go", "build", "-o", binary, "../cmd/menagerie").CombinedOutput()
		if built.err != nil {
			t.Log(string(out))
		}
	})
	require.NoError(t, built.err)
	return binary
}
