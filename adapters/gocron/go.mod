// The adapter is a module of its own, so that users of the locks do not inherit gocron.
module github.com/go-menagerie/menagerie/adapters/gocron

go 1.26.0

require (
	github.com/go-co-op/gocron/v2 v2.21.2
	github.com/go-menagerie/menagerie v0.0.0
	github.com/google/uuid v1.6.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/jonboulle/clockwork v0.5.0 // indirect
	github.com/robfig/cron/v3 v3.0.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sync v0.24.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
