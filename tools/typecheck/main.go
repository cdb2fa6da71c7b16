// Command typecheck tells whether the packages below the current directory, and their tests, compile on the operating
// systems that it is given:
//
//	typecheck darwin windows
//
// It has their types checked from sources. To compile for another system takes four times as much of the processor's
// time, because the standard library is compiled for it, too; and "go build" leaves out the tests. What only the compiler
// finds, such as a function without a body, is not found. It prints what is wrong and ends with 1 then.
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
				packages.NeedDeps | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax,
			Env:   append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0"),
			Tests: true,
		}, "./...")
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", goos, err)
			code = 1
		} else if n := packages.PrintErrors(pkgs); n > 0 {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %d errors\n", goos, n)
			code = 1
		}
	}
	os.Exit(code)
}
