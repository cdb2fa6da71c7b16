// The rivals are a module of their own, so that users of the locks do not inherit what the rivals depend on.
//
// Internal to this repository: no version of it is released.
module github.com/go-menagerie/menagerie/bench/rivals

go 1.26.0

replace github.com/go-menagerie/menagerie => ../..

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/go-redsync/redsync/v4 v4.18.1
	github.com/go-zookeeper/zk v1.0.4
	github.com/gomodule/redigo v1.9.3
	github.com/stretchr/testify v1.12.1
	go.etcd.io/etcd/client/v3 v3.5.29
	go.uber.org/zap v1.17.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/coreos/go-semver v0.3.0 // indirect
	github.com/coreos/go-systemd/v22 v22.3.2 // indirect
	github.com/go-menagerie/menagerie/bench v0.0.0
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	go.etcd.io/etcd/api/v3 v3.5.29 // indirect
	go.etcd.io/etcd/client/pkg/v3 v3.5.29 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	go.uber.org/multierr v1.6.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.51.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.34.0 // indirect
	google.golang.org/genproto/googleapis/api v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20251202230838-ff82c1b0f217 // indirect
	google.golang.org/grpc v1.79.3 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)

replace github.com/go-menagerie/menagerie/bench => ..
