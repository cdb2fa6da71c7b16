package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// logKeys are all that a line of a log may have.
var logKeys = []string{"server", "session", "path", "node", "name", "kind", "token", "owner", "waited", "held", "after", "reason", "error", "attempt", "job", "item"}

var (
	logLevels = []string{"Debug", "Info", "Warn", "Error"}
	others    = []string{"Log", "LogAttrs", "With", "WithGroup", "DebugContext", "InfoContext", "WarnContext", "ErrorContext"} // of a slog.Logger
	logRow    = regexp.MustCompile("(?m)^\\| (" + strings.Join(logLevels, "|") + ") \\| `([^`]*)` \\| ([^|]*) \\|")
	logName   = regexp.MustCompile(`(?i)^(log|logger|once|slog)$`)
)

// Every line that the code logs stands in a table of logs.md, with its level and its keys, and no other.
func TestTheTablesHaveEveryLineThatIsLogged(t *testing.T) {
	inCode := make(map[string][]string) // the places of each line
	for _, root := range append(public(t), "../internal", "../cmd/menagerie") {
		require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{"testing", "testdata", "pagetest", "conformance"}, d.Name()):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			for _, c := range logCalls(t, name) {
				inCode[c.line] = append(inCode[c.line], c.at)
			}
			return nil
		}))
	}
	require.Greater(t, len(inCode), 30)
	var inTable []string
	for _, m := range logRow.FindAllStringSubmatch(read(t, "logs.md"), -1) {
		line := fmt.Sprintf("%s %q", m[1], m[2])
		for _, key := range inlineCode.FindAllString(m[3], -1) {
			line += " " + strings.Trim(key, "`")
		}
		assert.False(t, slices.Contains(inTable, line), "twice in the tables: %s", line)
		inTable = append(inTable, line)
		assert.NotEmpty(t, inCode[line], "in a table, but not in the code: %s", line)
	}
	for line, places := range inCode {
		assert.True(t, slices.Contains(inTable, line), "in the code, but in no table: %s: %s", places, line)
	}
}

// logCall is a call that logs: its line as the table has it, and its place.
type logCall struct{ line, at string }

// logCalls are those of a file. A message must be a constant, and so must each key.
func logCalls(t *testing.T, name string) (all []logCall) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		at := set.Position(call.Pos()).String()
		switch msg, constant := text(call.Args[0]); {
		case slices.Contains(others, method.Sel.Name):
			assert.False(t, ofLog(method), "%s: its level or its keys are not written out", at)
		case !slices.Contains(logLevels, method.Sel.Name):
		case constant:
			all = append(all, logCall{logLine(t, at, method.Sel.Name, msg, call), at})
		default: // an error has such a method, too
			assert.False(t, ofLog(method) || method.Sel.Name != "Error", "%s: a message that is no constant", at)
		}
		return true
	})
	return all
}

// logLine is the level, the message and the keys of a call.
func logLine(t *testing.T, at, level, msg string, call *ast.CallExpr) string {
	assert.False(t, call.Ellipsis.IsValid(), "%s: keys that are not written out", at)
	assert.Equal(t, 1, len(call.Args)%2, "%s: a key without a value", at)
	said := fmt.Sprintf("%s %q", level, msg)
	for i := 1; i < len(call.Args); i += 2 {
		key, _ := text(call.Args[i])
		assert.True(t, slices.Contains(logKeys, key), "%s: the key %q", at, key)
		said += " " + key
	}
	return said
}

// ofLog reports whether a method is one of a log, as far as its name tells.
func ofLog(method *ast.SelectorExpr) bool {
	of := method.X
	if call, ok := of.(*ast.CallExpr); ok {
		of = call.Fun
	}
	switch of := of.(type) {
	case *ast.Ident:
		return logName.MatchString(of.Name)
	case *ast.SelectorExpr:
		return logName.MatchString(of.Sel.Name)
	}
	return false
}

// text is the value of a text that is written out.
func text(e ast.Expr) (value string, ok bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(l.Value)
	return value, err == nil
}
