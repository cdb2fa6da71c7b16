package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/go-menagerie/menagerie/bench"
)

// etcdRival is the lock of etcd's own client, on a server of its own that syncs its log, as it does by default.
func etcdRival(ctx context.Context) (*rival, error) {
	version, err := versionOf("etcd", "--version")
	if err != nil {
		return nil, missing("etcd", "etcd-server")
	}
	client, peer, err := twoPorts()
	if err != nil {
		return nil, err
	}
	srv, err := startServer(func(dir string) []string {
		return []string{"etcd", "--name", "rival", "--data-dir", dir,
			"--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
			"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
			"--initial-cluster", "rival=http://" + peer, "--initial-cluster-state", "new"}
	})
	if err != nil {
		return nil, err
	}
	e := etcdServer{client}
	if err := srv.await(ctx, e.answers); err != nil {
		return nil, err
	}
	locks := map[string]bench.Opener{bench.Uncontended: bench.Exclusive(e.open), bench.Contended: bench.Exclusive(e.open)}
	peerOf := elsewhere{bench.NewPeer("etcd", locks), srv.stop}
	return &rival{Peer: peerOf, what: "concurrency.Mutex of go.etcd.io/etcd/client/v3, " + strings.ReplaceAll(version, " Version:", "")}, nil
}

type etcdServer struct{ addr string }

func (e etcdServer) dial() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{e.addr}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
}

func (e etcdServer) answers(ctx context.Context) error {
	c, err := e.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Get(ctx, "ready")
	return err
}

// open gives each client a connection and a lease of its own.
func (e etcdServer) open(_ context.Context, at bench.Site) (*bench.Crew, error) {
	var sessions []*concurrency.Session
	crew := &bench.Crew{Close: func() {
		for _, s := range sessions {
			_ = s.Close() // the lease ends by itself, too
			_ = s.Client().Close()
		}
	}}
	for range at.Clients {
		c, err := e.dial()
		if err != nil {
			crew.Close()
			return nil, err
		}
		s, err := concurrency.NewSession(c, concurrency.WithTTL(60))
		if err != nil {
			crew.Close()
			return nil, errors.Join(err, c.Close())
		}
		sessions = append(sessions, s)
		crew.Lockers = append(crew.Lockers, etcdLock{concurrency.NewMutex(s, at.Path)})
	}
	return crew, nil
}

type etcdLock struct{ *concurrency.Mutex }

func (l etcdLock) Acquire(ctx context.Context) error { return l.Lock(ctx) }

func (l etcdLock) Release() error { return l.Unlock(context.Background()) }

// elsewhere is a peer whose requests go to other servers than ZooKeeper's, where nobody counts them.
type elsewhere struct {
	bench.Peer
	end func()
}

func (p elsewhere) Run(ctx context.Context, s bench.Slice) (bench.Sample, error) {
	sample, err := p.Peer.Run(ctx, s)
	sample.Traffic = bench.Traffic{Requests: bench.Uncounted, BytesIn: bench.Uncounted, BytesOut: bench.Uncounted}
	return sample, err
}

func (p elsewhere) Close() error {
	p.end()
	return nil
}

func missing(what, pkg string) error {
	return fmt.Errorf("%s is not installed (Debian: apt-get install %s)", what, pkg)
}
