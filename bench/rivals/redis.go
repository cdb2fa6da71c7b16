package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"

	"github.com/go-menagerie/menagerie/bench"
)

// redsyncRival is redsync on one server that keeps nothing on disk, which is how it is mostly used. It is faster than a log
// that is synced, and forgets all locks if the server dies.
func redsyncRival(ctx context.Context) (*rival, error) {
	version, err := versionOf("redis-server", "--version")
	if err != nil {
		return nil, missing("redis-server", "redis-server")
	}
	addr, _, err := twoPorts()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	srv, err := startServer(func(dir string) []string {
		return []string{"redis-server", "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no"}
	})
	if err != nil {
		return nil, err
	}
	r := redisServer{addr}
	if err := srv.await(ctx, r.answers); err != nil {
		return nil, err
	}
	locks := map[string]bench.Opener{bench.Uncontended: bench.Exclusive(r.open), bench.Contended: bench.Exclusive(r.open)}
	return &rival{Peer: elsewhere{bench.NewPeer("redsync", locks), srv.stop},
		what: "github.com/go-redsync/redsync/v4 on one server without a log; who waits asks again each millisecond; " + firstWords(version, 3)}, nil
}

type redisServer struct{ addr string }

func (r redisServer) dial() (redis.Conn, error) {
	return redis.Dial("tcp", r.addr, redis.DialConnectTimeout(5*time.Second))
}

func (r redisServer) answers(context.Context) error {
	c, err := r.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Do("PING")
	return err
}

// open gives each client a connection of its own. By default redsync waits for 50 to 250 ms between two attempts, half a slice:
// they ask each millisecond here, so that the slice ends soon after its time.
func (r redisServer) open(_ context.Context, at bench.Site) (*bench.Crew, error) {
	var pools []*redis.Pool
	crew := &bench.Crew{Close: func() {
		for _, p := range pools {
			_ = p.Close()
		}
	}}
	for range at.Clients {
		p := &redis.Pool{MaxIdle: 1, Dial: r.dial}
		pools = append(pools, p)
		m := redsync.New(pool.NewPool(p)).NewMutex(at.Path, redsync.WithExpiry(20*time.Second),
			redsync.WithTries(1<<30), redsync.WithRetryDelay(time.Millisecond))
		crew.Lockers = append(crew.Lockers, redisLock{m})
	}
	return crew, nil
}

type redisLock struct{ m *redsync.Mutex }

func (l redisLock) Acquire(ctx context.Context) error { return l.m.LockContext(ctx) }

func (l redisLock) Release() error {
	ok, err := l.m.Unlock()
	if err == nil && !ok {
		return errors.New("it was not held any more")
	}
	return err
}
