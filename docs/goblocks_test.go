package docs

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every Go block of README.md and the pages is compiled, and what can run in a bubble with the server of zktest runs. The rules:
//
//   - Declarations are a package of their own. Tests among them run.
//   - Statements become the body of a function that has t, ctx, srv (a server), s and session (a session at it), and what assumed
//     says of the page. They run, and return what they return, or their last err. ctx ends after a minute.
//   - What they import follows from the names that they use: sources.
//   - "..." stands for anything: such a block is not run. Others are not run for the reasons in notRun.
//   - A comment behind fmt.Println is what it prints.
//   - Blocks that need another module are parts of its sources: elsewhere.
var (
	// sources are the packages that blocks use, beside those of this module. The key is the name in front of the dot.
	sources = map[string]string{
		"context": "context", "ensemble": module + "internal/testing/ensemble", "errors": "errors", "exec": "os/exec", "fmt": "fmt",
		"http": "net/http", "log": "log", "maps": "maps", "net": "net", "os": "os", "rand": "math/rand/v2", "signal": "os/signal",
		"require": "github.com/stretchr/testify/require", "slices": "slices", "slog": "log/slog", "sql": "database/sql", "strconv": "strconv", "strings": "strings", "sync": "sync",
		"synctest": "testing/synctest", "syscall": "syscall", "testing": "testing", "time": "time", "zk": "github.com/go-zookeeper/zk",
	}
	// assumed are the declarations that the blocks of a page take for granted.
	assumed = map[string]string{
		"cron.md": `var invoices = func(context.Context, time.Time, zksync.Token) error { return nil }
			var synchronize = func(context.Context, zkcron.Tick) error { return nil }`,
		"ensemble.md": `var (
				e                *ensemble.Ensemble
				leader, follower *ensemble.Server
				cmd              *exec.Cmd
				err              error
			)`,
		"group.md": `var partitions = []string{"a", "b"}
			var work = func(context.Context, string, *zksync.Lease) error { return nil }
			var show = func([]zkgroup.Member, error) {}`,
		"interop.md": `var classpath = "."`,
		"map.md": `var partition, me, other = 7, "worker-1", "worker-2"
			var flags = zkmap.New[string, bool](s, "/flags")`,
		"queue.md": `type Order struct{ Tea string }
			var work = func(Order) error { return nil }
			var deliver = func(context.Context, Order) error { return nil }
			var orders = zkqueue.New[Order](s, "/queues/orders")`,
		"porting/services.md": `type mail struct{ to, text string }`,
		"watch.md":            `var use = func([]byte, bool) {}`,
	}
	notRun = map[string]string{
		"zksync.Connect(": "it names servers that are not there",
		"ensemble.":       "it is for real servers",
		"e.Cut(":          "it is for real servers",
		"e.SetSequence(":  "it is for real servers",
		"exec.Command(":   "it starts another program",
		"signal.Notify":   "it listens outside the bubble",
	}
	// elsewhere are the pages whose blocks need another module: each block is a part of one of these files, which are compiled there.
	elsewhere = map[string]string{
		"adapters.md":   "../adapters/*/*_test.go",
		"fencing.md":    "../examples/fencing/*.go",
		"kubernetes.md": "../examples/kubernetes/*.go",
		"metrics.md":    "../observe/zkprom/*_test.go",
		"traces.md":     "../observe/zkotel/*_test.go",
	}
	// withoutBodies has the signatures of functions, which another test compares with the code.
	withoutBodies = "zktest/signatures.md"
)

func TestEveryGoBlockCompilesAndRuns(t *testing.T) {
	files := make(map[string]string)
	var body, imported strings.Builder
	n, ran := 0, 0
	for _, b := range blocks(t) {
		if b.lang != "go" || b.page == withoutBodies {
			continue
		}
		if files := elsewhere[b.page]; files != "" {
			assert.True(t, contain(t, files, b.text), "no file of %s has the block in line %d of %s", files, b.line, b.page)
			continue
		}
		n++
		g := wrap(t, b, n)
		if g.alone {
			files[fmt.Sprintf("b%d/b.go", n)] = g.source
			fmt.Fprintf(&imported, "import _ %q\n", module+fmt.Sprintf("docs/blocks/b%d", n))
			continue
		}
		body.WriteString(g.source)
		if g.runs {
			ran++
		}
	}
	require.Greater(t, n, 15)
	require.Greater(t, ran, 8)
	files["run_test.go"] = "package blocks\n\n" + imported.String() + importsOf(t, body.String()+harness) + body.String() + harness
	program := filepath.Join(t.TempDir(), "blocks.test")
	out, err := exec.Command("go", "test", "-vet=off", "-overlay", overlay(t, files), "-c", "-o", program, "./blocks").CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command(program, "-test.v").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, ran, strings.Count(string(out), "--- PASS: "), string(out))
}

// contain reports whether one of some files has the lines of a block, however they are indented.
func contain(t *testing.T, files, text string) bool {
	lines := regexp.MustCompile(`(?m)^[ \t]+`)
	names, err := filepath.Glob(files)
	require.NoError(t, err)
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(lines.ReplaceAllString(read(t, name), ""), lines.ReplaceAllString(text, ""))
	})
}

// harness runs the blocks.
const harness = `
//line blocks_test.go:1
func runs(t *testing.T, block func(*testing.T, context.Context, *zktest.Server, *zksync.Session) error) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := block(t, ctx, srv, srv.Session(t)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func prints(t *testing.T, want string, args ...any) {
	if got := strings.TrimSpace(fmt.Sprintln(args...)); got != want {
		t.Errorf("it prints %q", got)
	}
}
`

// goBlockSource is a block as a part of a program.
type goBlockSource struct {
	source      string
	alone, runs bool // a package of its own; run by a test
}

var (
	ellipsis = regexp.MustCompile(`\{ \.\.\. \}|(?m)^\s*\.\.\.$`)
	printed  = regexp.MustCompile(`(?m)^(\s*)fmt\.Println\((.*)\) // (.*)$`)
	aTest    = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	clause   = regexp.MustCompile(`(?m)^package \w+$`)
	remark   = regexp.MustCompile(`(?m)(^|\s)//.*$`)
)

func wrap(t *testing.T, b block, n int) (g goBlockSource) {
	text := printed.ReplaceAllString(b.text, "${1}prints(t, `$3`, $2)")
	text = ellipsis.ReplaceAllStringFunc(text, func(s string) string {
		return strings.Replace(s, "...", `panic("...")`, 1)
	})
	g.runs = !ellipsis.MatchString(b.text)
	for part := range notRun {
		g.runs = g.runs && !strings.Contains(b.text, part)
	}
	at := fmt.Sprintf("//line %s:%d\n", filepath.Join("docs", b.page), b.line)
	if clause.MatchString(text) {
		return goBlockSource{source: at + clause.ReplaceAllString(text, "package blocks"), alone: true}
	}
	if f, err := parser.ParseFile(token.NewFileSet(), b.page, "package p\n"+text, 0); err == nil {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			g.alone = g.alone || !ok || !strings.HasPrefix(fn.Name.Name, "Test")
		}
		if g.alone {
			g.source = "package blocks\n\n" + importsOf(t, text+assumed[b.page]) + assumed[b.page] + "\n" + at + text
			return g
		}
		name := "Test"
		if !g.runs {
			name = "compiled"
		}
		g.source = at + aTest.ReplaceAllString(text, fmt.Sprintf("func %s${1}OfBlock%d(t *testing.T)", name, n)) + "\n"
		return g
	}
	g.source = fmt.Sprintf("func block%d(t *testing.T, ctx context.Context, srv *zktest.Server, s *zksync.Session) error {\n"+
		"session := s\n_ = session\n%s\n%s{\n%s%s}\n}\n\n", n, assumed[b.page]+used(t, assumed[b.page]), at, text, end(t, text))
	if g.runs {
		g.source += fmt.Sprintf("func TestBlock%d(t *testing.T) { runs(t, block%d) }\n\n", n, n)
	}
	return g
}

// end is what stands behind the statements of a block.
func end(t *testing.T, text string) string {
	list := statements(t, text)
	_, returns := list[len(list)-1].(*ast.ReturnStmt)
	names := namesOf(list)
	switch {
	case returns:
		return ""
	case slices.Contains(names, "err"):
		return used(t, text) + "return err\n"
	}
	return used(t, text) + "return nil\n"
}

// used uses all variables of some statements, because the compiler wants it.
func used(t *testing.T, text string) (lines string) {
	for _, name := range namesOf(statements(t, text)) {
		lines += "\n_ = " + name
	}
	return lines + "\n"
}

func statements(t *testing.T, text string) []ast.Stmt {
	f, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+text+"\n}", 0)
	require.NoError(t, err, text)
	return f.Decls[0].(*ast.FuncDecl).Body.List
}

// namesOf returns the variables that statements declare or assign.
func namesOf(list []ast.Stmt) (names []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.Name != "_" && !slices.Contains(names, id.Name) {
				names = append(names, id.Name)
			}
		}
	}
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			for _, l := range s.Lhs {
				if id, ok := l.(*ast.Ident); ok {
					add(id)
				}
			}
		case *ast.DeclStmt:
			for _, spec := range s.Decl.(*ast.GenDecl).Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					add(v.Names...)
				}
			}
		}
	}
	return names
}

// importsOf returns the import declarations for the packages whose names a text uses.
func importsOf(t *testing.T, text string) string {
	text = remark.ReplaceAllString(text, "")
	from := maps.Clone(sources)
	for _, dir := range public(t) {
		from[filepath.Base(dir)] = module + filepath.Base(dir)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if regexp.MustCompile(`(^|[^\w."/])` + name + `\.[A-Z]`).MatchString(text) {
			fmt.Fprintf(&b, "import %s %q\n", name, from[name])
		}
	}
	return b.String() + "\n"
}

// overlay writes files for "go test -overlay", as if they were in the folder blocks, and returns the name of the list of them.
func overlay(t *testing.T, files map[string]string) string {
	here, err := filepath.Abs("blocks")
	require.NoError(t, err)
	dir, replace := t.TempDir(), make(map[string]string)
	for name, text := range files {
		to := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		require.NoError(t, os.WriteFile(to, []byte(text), 0o600))
		replace[filepath.Join(here, name)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	name := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(name, list, 0o600))
	return name
}
