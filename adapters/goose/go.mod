// The adapter is a module of its own, so that users of the locks do not inherit goose.
module github.com/go-menagerie/menagerie/adapters/goose

go 1.26.0

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/pressly/goose/v3 v3.30.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.25.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/sethvargo/go-retry v0.5.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
