// The development tools are a module of their own, so that users of the locks do not inherit what
// the tools depend on.
//
// Internal to this repository: no version of it is released.
module github.com/go-menagerie/menagerie/tools

go 1.26.0

tool honnef.co/go/tools/cmd/staticcheck

require (
	golang.org/x/mod v0.43.0
	golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da
	golang.org/x/tools v0.52.0
)

require (
	github.com/BurntSushi/toml v1.4.1-0.20240526193622-a339e1f7089c // indirect
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	golang.org/x/exp/typeparams v0.0.0-20231108232855-2478ac86f678 // indirect
	golang.org/x/sync v0.24.0 // indirect
	honnef.co/go/tools v0.8.2 // indirect
)
