package docs

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block of code of a page.
type block struct {
	page string // from this folder, such as ../README.md
	line int    // of its first line
	lang string // what stands behind the fence; console if it shows commands behind "$ ", sh if it is indented
	text string
	name string // for the tables of this package: the page and the section; of the second one of a language there, with "/2"
}

var fence = regexp.MustCompile("^```\\s*(\\w*)")

// blocks are all blocks of code of README.md, CONTRIBUTING.md and the pages.
func blocks(t *testing.T) (all []block) {
	for _, page := range append(pages(t), "../README.md", "../CONTRIBUTING.md") {
		all = append(all, blocksOf(page, read(t, page))...)
	}
	require.Greater(t, len(all), 100)
	return all
}

func blocksOf(page, text string) (all []block) {
	var b *block
	fenced, blank, section, count := false, true, page, make(map[string]int)
	end := func() {
		if b != nil {
			b.lang, b.name = lang(*b), section
			if count[b.lang]++; count[b.lang] > 1 {
				b.name += "/" + strconv.Itoa(count[b.lang])
			}
			all = append(all, *b)
		}
		b, fenced = nil, false
	}
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case m != nil && fenced:
			end()
		case m != nil:
			end()
			b, fenced = &block{page: page, line: i + 2, lang: m[1]}, true
		case fenced:
			b.text += line + "\n"
		case indented && (b != nil || blank):
			if b == nil {
				b = &block{page: page, line: i + 1, lang: "sh"}
			}
			b.text += code + "\n"
		default:
			end()
			if h := heading.FindStringSubmatch(line); h != nil {
				section, count = page+"#"+slug(h[1]), make(map[string]int)
			}
		}
		blank = line == ""
	}
	end()
	return all
}

func lang(b block) string {
	switch {
	case b.lang != "":
		return b.lang
	case strings.HasPrefix(b.text, "$ "):
		return "console"
	}
	return "text"
}

// A command that a block of a shell shows, and what it prints.
type command struct {
	text, prints string
}

// commands are those of a block: of a console behind "$ ", each with the lines below it.
func (b block) commands() (all []command) {
	switch b.lang {
	case "sh", "bash":
		return []command{{text: b.text}}
	case "console":
		for line := range strings.Lines(b.text) {
			if shown, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, command{text: shown})
			} else if last := len(all) - 1; last >= 0 && strings.HasSuffix(all[last].text, "\\\n") {
				all[last].text += strings.TrimPrefix(line, "> ")
			} else if last >= 0 {
				all[last].prints += line
			}
		}
	}
	return all
}

func TestBlocksAreFoundAsAReaderSeesThem(t *testing.T) {
	const page = "# A page\n\n    make help  # x\n    make test\n\n* item\n\n```go\nx := 1\n```\n\n" +
		"```\n$ menagerie ls \\\n>   -r\nPATH\n$ true\n```\n\n## Its end\n\n```\noutput\n```\nprose\n    goes on\n```go\nx := 2\n```\n"
	got := blocksOf("p.md", page)
	require.Equal(t, []block{
		{"p.md", 3, "sh", "make help  # x\nmake test\n", "p.md#a-page"},
		{"p.md", 9, "go", "x := 1\n", "p.md#a-page"},
		{"p.md", 13, "console", "$ menagerie ls \\\n>   -r\nPATH\n$ true\n", "p.md#a-page"},
		{"p.md", 22, "text", "output\n", "p.md#its-end"},
		{"p.md", 27, "go", "x := 2\n", "p.md#its-end"},
	}, got)
	require.Equal(t, []command{{"menagerie ls \\\n  -r\n", "PATH\n"}, {"true\n", ""}}, got[2].commands())
}
