// The tests beside other libraries are a module of their own: users of the locks do not need them.
//
// Internal to this repository: no version of it is released.
module github.com/go-menagerie/menagerie/interop

go 1.26.0

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/go-zookeeper/zk v1.0.4
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
)
