package zksync_test

import (
	"net"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func init() {
	zksync.Serve = func(l net.Listener) func() {
		srv := zktest.Start()
		go srv.Serve(l)
		return srv.Close
	}
}
