package docs

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	var err error
	if built.folder, err = os.MkdirTemp("", "menagerie-docs-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(built.folder)
	os.Exit(code)
}
