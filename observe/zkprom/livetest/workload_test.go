package livetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zkgroup"
	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// serversKey is the variable with which this program is the process that is scraped.
const serversKey = "LIVETEST_SERVERS"

func TestMain(m *testing.M) {
	if servers := os.Getenv(serversKey); servers != "" {
		if err := workload(servers); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// sessionTimeout is that of the workload. From a lost connection on its leases last a little shorter.
const sessionTimeout = 5 * time.Second

// workload prints where its metrics are, is in trouble until it reads a line, and ends with its standard input.
func workload(servers string) error {
	metrics, registry := zkprom.New(zkprom.WithPaths("/batches/*")), prometheus.NewRegistry()
	registry.MustRegister(metrics)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	go func() { _ = http.Serve(l, nil) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := zksync.Connect(ctx, servers, zksync.WithTimeout(sessionTimeout), zksync.WithTracer(metrics))
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("metrics at", l.Addr())

	trouble, calm := context.WithCancel(ctx)
	defer calm()
	go lead(ctx, s)
	go run(ctx, s)
	go batch(ctx, s)
	go hold(trouble, s)
	for range 2 {
		go contend(trouble, zksync.NewMutex(s, "/locks/stock", zksync.WithName("stock")))
	}
	go give(trouble, zkqueue.New[string](s, "/queues/mail", zksync.WithName("mail")))
	go bury(trouble, zkqueue.New[string](s, "/queues/orders", zksync.WithName("orders")))
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		calm()
	}
	return nil
}

// lead always holds a lock, as a leader does.
func lead(ctx context.Context, s *zksync.Session) {
	for ctx.Err() == nil {
		_ = zksync.NewMutex(s, "/locks/leader", zksync.WithName("leader")).Do(ctx, func(ctx context.Context, _ *zksync.Lease) error {
			<-ctx.Done()
			return nil
		})
	}
}

// run has a job.
func run(ctx context.Context, s *zksync.Session) {
	c := zkcron.New(s, "/cron", zksync.WithName("cron"))
	c.Every("sync", time.Second, func(context.Context, zkcron.Tick) error { return nil })
	_ = c.Run(ctx)
}

// batch has an item of a group that fails.
func batch(ctx context.Context, s *zksync.Session) {
	g := zkgroup.New(s, "/batches/invoices")
	m, err := g.Join(ctx, zkgroup.Member{ID: "one"})
	if err == nil {
		err = g.Assign(ctx, m, []string{"a", "b"}, func(ctx context.Context, item string, _ *zksync.Lease) error {
			if item == "a" {
				return errors.New("no")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}
	fmt.Fprintln(os.Stderr, "batch:", err)
}

// hold holds a lock for which another goroutine waits, and a third one tries.
func hold(ctx context.Context, s *zksync.Session) {
	m := zksync.NewMutex(s, "/locks/report", zksync.WithName("report"))
	for ctx.Err() == nil {
		_ = m.Do(ctx, func(ctx context.Context, _ *zksync.Lease) error {
			waiter := context.WithoutCancel(ctx)
			go func() { _ = m.Do(waiter, func(context.Context, *zksync.Lease) error { return nil }) }()
			for ctx.Err() == nil {
				_ = m.TryLock()
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
	}
}

// contend holds a lock for a while, again and again.
func contend(ctx context.Context, m *zksync.Mutex) {
	for ctx.Err() == nil {
		_ = m.Do(ctx, func(context.Context, *zksync.Lease) error {
			time.Sleep(300 * time.Millisecond)
			return nil
		})
	}
}

// give gives the same element back, again and again.
func give(ctx context.Context, q *zkqueue.Queue[string]) {
	_ = q.Put(ctx, "letter")
	for ctx.Err() == nil {
		if d, err := q.Receive(ctx); err == nil {
			_ = d.Nack(ctx)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// bury has elements become dead letters. The first series of a counter has no increase yet, so there are several.
func bury(ctx context.Context, q *zkqueue.Queue[string]) {
	go func() {
		for ctx.Err() == nil {
			_ = q.Put(ctx, "order")
			time.Sleep(500 * time.Millisecond)
		}
	}()
	_ = q.Work(ctx, 1, func(context.Context, *zkqueue.Delivery[string]) error { return errors.New("no") }, zkqueue.WithMaxAttempts(1))
}
