// The examples are a module of their own, so that users of the locks do not inherit what the examples depend on.
//
// Internal to this repository: no version of it is released.
module github.com/go-menagerie/menagerie/examples

go 1.26.0

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/go-zookeeper/zk v1.0.4
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/petermattis/goid v0.0.0-20260820044319-269ab09b5261 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)
