// The measurements are a module of their own, so that users of the locks do not inherit what they depend on.
module github.com/go-menagerie/menagerie/bench

go 1.26.0

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/go-zookeeper/zk v1.0.4
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.24.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
