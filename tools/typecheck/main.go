// Command typecheck checks the types of the packages below the current directory, and of their tests, for each operating
// system that it is given:
//
//	typecheck darwin windows
//
// It prints what is wrong, and then ends with 1. On a new machine "go build" takes four times as much of the processor's
// time, because it compiles the standard library for that system first; and it leaves out the tests. What only the
// compiler or the linker finds is not found: a function without a body, or a command without a main function.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS ...")
		os.Exit(2)
	}
	code := 0
	for _, goos := range os.Args[1:] {
		pkgs, err := packages.Load(&packages.Config{
			Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
				packages.NeedDeps | packages.NeedTypes,
			Env:   append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0"),
			Tests: true,
		}, "work")
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", goos, err)
			code = 1
		} else if len(pkgs) == 0 {
			fmt.Fprintf(os.Stderr, "typecheck: %s: no packages below the current directory\n", goos)
			code = 1
		} else if packages.PrintErrors(pkgs) > 0 {
			fmt.Fprintf(os.Stderr, "typecheck: the above is wrong on %s\n", goos)
			code = 1
		}
	}
	os.Exit(code)
}
