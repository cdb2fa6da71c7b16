// Kubernetes: a service of several pods, of which one works at a time. docs/kubernetes.md explains it, and docs/kubernetes has
// its manifests.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-menagerie/menagerie/zksync"
)

func main() {
	// The kubelet sends SIGTERM after preStop, and SIGKILL at the end of the grace period.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := serve(ctx); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context) error {
	timeout, err := time.ParseDuration(os.Getenv("SESSION_TIMEOUT"))
	if err != nil {
		return err
	}
	longest, err := time.ParseDuration(os.Getenv("ORDER_TIMEOUT"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", os.Getenv("LISTEN"))
	if err != nil {
		return err
	}
	defer listener.Close()
	fmt.Println("listens at", listener.Addr())
	// Without servers it waits here, and the pod is not ready. If it ended instead, it would be started again, later each time.
	s, err := zksync.Connect(ctx, os.Getenv("ZOOKEEPER"), zksync.WithTimeout(timeout),
		zksync.WithName(os.Getenv("POD_NAME")), zksync.WithSessionFile(os.Getenv("SESSION_FILE")))
	if err != nil {
		return err
	}
	defer s.Close() // frees the locks, within 2 s
	health := http.NewServeMux()
	health.Handle("/ready", zksync.HealthHandler(s))
	go http.Serve(listener, health)
	lock := zksync.NewMutex(s, "/orders/lock")
	for ctx.Err() == nil {
		err := lock.Do(ctx, func(ctx context.Context, l *zksync.Lease) error { return work(ctx, l, longest) })
		if err != nil && !errors.Is(err, zksync.ErrLost) {
			return err
		}
	}
	return nil
}

// work processes orders until ctx ends, with SIGTERM or with the lease.
func work(ctx context.Context, l *zksync.Lease, longest time.Duration) error {
	fmt.Println("works, with token", l.Token())
	for ctx.Err() == nil {
		order, done := context.WithTimeout(l.Context(), longest) // SIGTERM does not end it, so it counts in the grace period
		err := process(order, l.Token())
		done()
		if err != nil {
			return err
		}
	}
	return nil
}

// process stands for the work. It gives the token to the storage: see docs/fencing.md.
func process(ctx context.Context, token zksync.Token) error {
	fmt.Println("begins an order")
	select {
	case <-time.After(500 * time.Millisecond):
		fmt.Println("ends an order, with token", token)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
