// SQLite is large, so the one example that uses it is a module of its own.
//
// Internal to this repository: no version of it is released.
module github.com/go-menagerie/menagerie/examples/cacherefill

go 1.26.0

replace github.com/go-menagerie/menagerie => ../..

replace github.com/go-menagerie/menagerie/examples => ..

require (
	github.com/go-menagerie/menagerie v0.0.0
	github.com/go-menagerie/menagerie/examples v0.0.0
	modernc.org/sqlite v1.62.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/dustin/go-humanize v1.1.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	github.com/ncruces/go-strftime v1.1.0 // indirect
	github.com/remyoudompheng/bigfft v0.0.0-20230129092748-24d4a6f8daec // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	modernc.org/libc v1.80.1 // indirect
	modernc.org/mathutil v1.7.1 // indirect
	modernc.org/memory v1.12.1 // indirect
)
