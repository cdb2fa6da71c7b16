package types_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const ours = "github.com/go-menagerie/menagerie/"

var imported = []string{ours + "zksync", ours + "zklatch", ours + "zkrwmutex", ours + "zkcron", ours + "zkcond", ours + "reentrant", "sync", "github.com/go-zookeeper/zk", "time"}

// compiled imports the packages of these programs, as the compiler has built them.
func compiled(t *testing.T, files *token.FileSet) types.Importer {
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, imported...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	return importer.ForCompiler(files, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
}

// compiler checks the types of programs that use the packages of this module.
func compiler(t *testing.T) func(body string) error {
	files := token.NewFileSet()
	from := compiled(t, files)
	return func(body string) error {
		text := "package p\n"
		for _, name := range imported {
			if regexp.MustCompile(`\b` + path.Base(name) + `\.`).MatchString(body) {
				text += "import \"" + name + "\"\n"
			}
		}
		f, err := parser.ParseFile(files, "p.go", text+body, 0)
		require.NoError(t, err)
		_, err = (&types.Config{Importer: from}).Check("p", files, []*ast.File{f}, nil)
		return err
	}
}

func TestAnOptionInTheWrongPlaceDoesNotCompile(t *testing.T) {
	check := compiler(t)
	session := []string{
		`WithTimeout(time.Second)`, `WithDialer(nil)`, `WithTLS(nil)`, `WithTLSFiles("", "", "")`, `WithAuth("", nil)`, `WithSessionFile("")`,
		`WithLogger(nil)`, `WithTracer(nil)`, `WithLeaseFraction(1)`, `WithExistingChroot()`, `WithForwardOnly()`,
	}
	atPath := []string{
		`WithCodec(nil)`, `WithLinger(0)`, `WithHandover(0)`, `WithMaxHold(0)`, `WithLockDelay(0)`, `WithAsyncUnlock()`,
	}
	common := []string{`WithACL(zk.WorldACL(1)...)`, `WithName("")`}
	for _, place := range []struct {
		text    string // with an option for %
		allowed []string
		refused []string
	}{
		{"func f() { _, _ = zksync.Connect(nil, \"\", %) }", session, atPath},
		{"func f() { zksync.NewMutex(nil, \"\", %) }", atPath, session},
		{"func f() { zkrwmutex.New(nil, \"\", %) }", atPath, session},
		{"func f() { zklatch.New(nil, \"\", 1, zklatch.WithEphemeral(), %) }", atPath, session},
		{"var _ zksync.SessionOption = %", session, atPath},
		{"var _ zksync.Option = %", atPath, session},
	} {
		for _, o := range append(common, place.allowed...) {
			require.NoError(t, check(strings.ReplaceAll(place.text, "%", "zksync."+o)), o)
		}
		for _, o := range place.refused {
			require.ErrorContains(t, check(strings.ReplaceAll(place.text, "%", "zksync."+o)), "Option", "%s: %s", place.text, o)
		}
	}
	require.Error(t, check(`func f() { zksync.NewMutex(nil, "", zkcron.WithAtMostOnce()) }`))
}

// go doc shows the fields and the methods of a type of the package itself only.
func TestTheTypesOfZksyncShowThemselves(t *testing.T) {
	pkg, err := compiled(t, token.NewFileSet()).Import(ours + "zksync")
	require.NoError(t, err)
	for _, name := range pkg.Scope().Names() {
		if o, ok := pkg.Scope().Lookup(name).(*types.TypeName); ok && o.Exported() {
			require.False(t, o.IsAlias(), name)
		}
	}
	for name, methods := range map[string]int{"Token": 5, "Contender": 1, "Error": 2, "Owner": 1, "Kind": 0, "State": 1} {
		named := pkg.Scope().Lookup(name).Type().(*types.Named)
		require.GreaterOrEqual(t, named.NumMethods(), methods, name)
		if fields, ok := named.Underlying().(*types.Struct); ok {
			for f := range fields.Fields() {
				require.True(t, f.Exported(), "%s.%s", name, f.Name())
			}
		}
	}
}

func TestAConditionOfAnotherLockDoesNotCompile(t *testing.T) {
	check := compiler(t)
	for _, l := range []string{"zksync.NewMutex(nil, \"\")", "zkrwmutex.New(nil, \"\")", "reentrant.NewMutex(nil)", "reentrant.NewRWMutex(nil)"} {
		require.NoError(t, check("func f() { zkcond.New("+l+", \"\") }"), l)
	}
	for _, l := range []string{"new(sync.Mutex)", "zkrwmutex.New(nil, \"\").RLocker()", "zksync.MultiLock()"} {
		require.ErrorContains(t, check("func f() { zkcond.New("+l+", \"\") }"), "missing method", l)
	}
}
