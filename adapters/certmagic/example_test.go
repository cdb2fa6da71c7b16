package zkcertmagic_test

import (
	"context"
	"fmt"

	"github.com/caddyserver/certmagic"
	"github.com/go-zookeeper/zk"

	zkcertmagic "github.com/go-menagerie/menagerie/adapters/certmagic"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// connect opens a session whose nodes only this user may read. In production it has WithTLS, too.
func connect(ctx context.Context, servers, password string) (*zksync.Session, error) {
	return zksync.Connect(ctx, servers,
		zksync.WithAuth("digest", []byte("web:"+password)),
		zksync.WithACL(zk.DigestACL(zk.PermAll, "web", password)...))
}

func Example() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := connect(ctx, srv.Addr(), "secret")
	if err != nil {
		panic(err)
	}
	defer s.Close()
	certmagic.Default.Storage = zkcertmagic.New(s, "/tls")

	// What certmagic does with it.
	storage := certmagic.Default.Storage
	if err := storage.Store(ctx, "certificates/ca/example.com/example.com.crt", []byte("a certificate")); err != nil {
		panic(err)
	}
	sites, err := storage.List(ctx, "certificates/ca", false)
	fmt.Println(sites, err)
	// Output: [certificates/ca/example.com] <nil>
}
