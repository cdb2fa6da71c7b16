// The command is a module of its own, so that users of the locks do not inherit what it depends on.
module github.com/go-menagerie/menagerie/cmd/menagerie

go 1.26.0

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/go-menagerie/menagerie/bench v0.0.0
	github.com/go-zookeeper/zk v1.0.4
	github.com/spf13/cobra v1.10.2
	github.com/spf13/pflag v1.0.9
	github.com/stretchr/testify v1.12.1
	golang.org/x/sync v0.24.0
	golang.org/x/sys v0.48.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
