// The drivers of two databases are for this example alone, so it is a module of its own.
//
// Internal to this repository: no version of it is released.
module github.com/go-menagerie/menagerie/examples/fencing

go 1.26.0

replace (
	github.com/go-menagerie/menagerie => ../..
	github.com/go-menagerie/menagerie/adapters/goose => ../../adapters/goose
)

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/go-menagerie/menagerie/adapters/goose v0.0.0
	github.com/go-zookeeper/zk v1.0.4
	github.com/lib/pq v1.12.3
	github.com/mattn/go-sqlite3 v1.14.53
	github.com/pressly/goose/v3 v3.30.0
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.25.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/mfridman/interpolate v0.0.2 // indirect
	github.com/sethvargo/go-retry v0.5.0 // indirect
	go.uber.org/multierr v1.11.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
)
