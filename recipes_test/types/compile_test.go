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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// compiler checks the types of programs that use the packages of this module.
func compiler(t *testing.T) func(body string) error {
	const module = "github.com/go-menagerie/menagerie/"
	uses := []string{module + "zksync", module + "zklatch", module + "zkrwmutex", module + "zkcron", "github.com/go-zookeeper/zk", "time"}
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, uses...)...)
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	files := token.NewFileSet()
	from := importer.ForCompiler(files, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	return func(body string) error {
		text := "package p\n"
		for _, name := range uses {
			if strings.Contains(body, name[strings.LastIndexByte(name, '/')+1:]+".") {
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
	path := []string{
		`WithCodec(nil)`, `WithLinger(0)`, `WithHandover(0)`, `WithMaxHold(0)`, `WithLockDelay(0)`, `WithAsyncUnlock()`,
	}
	common := []string{`WithACL(zk.WorldACL(1)...)`, `WithName("")`}
	for _, place := range []struct {
		text    string // with an option for %
		allowed []string
		refused []string
	}{
		{"func f() { _, _ = zksync.Connect(nil, \"\", %) }", session, path},
		{"func f() { zksync.NewMutex(nil, \"\", %) }", path, session},
		{"func f() { zkrwmutex.New(nil, \"\", %) }", path, session},
		{"func f() { zklatch.New(nil, \"\", 1, zklatch.WithEphemeral(), %) }", path, session},
		{"var _ zksync.SessionOption = %", session, path},
		{"var _ zksync.Option = %", path, session},
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
