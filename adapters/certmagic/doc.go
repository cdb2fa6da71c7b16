// Package zkcertmagic is a storage of github.com/caddyserver/certmagic on ZooKeeper: many processes share their certificates, and
// one of them obtains or renews each.
//
//	certmagic.Default.Storage = zkcertmagic.New(session, "/tls")
//
// The storage has private keys. Whoever may read the nodes can pretend to be the site: give the session zksync.WithTLS,
// zksync.WithAuth and zksync.WithACL. docs/adapters.md says more.
package zkcertmagic
