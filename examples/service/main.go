// Service: an HTTP server that uses locks, with what it needs in production: readiness, metrics, traces, logs, and an end in
// the right order. It serves until SIGTERM or Ctrl-C:
//
//	curl -X POST localhost:8080/orders/7/pay   has an order paid, once in the cluster
//	curl localhost:8080/ready                  200 while locks can be granted and kept, else 503 and why
//	curl localhost:8080/metrics                for Prometheus
//
// Logs go to standard error, and spans to standard output, where yours would go to a collector.
package main

import (
	"context"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-menagerie/menagerie/observe/zkotel"
	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zkcron"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

var (
	servers = flag.String("servers", os.Getenv("MENAGERIE_SERVERS"), "connect string; by default an in-process server")
	listen  = flag.String("listen", "localhost:8080", "address of the HTTP server")
	every   = flag.Duration("every", 24*time.Hour, "how often one process of the cluster writes a report")
	charge  = flag.Duration("charge", 200*time.Millisecond, "how long a payment takes")
	drain   = flag.Duration("drain", 5*time.Second, "how long after SIGTERM requests still come, until the load balancer has asked /ready")
)

func main() {
	flag.Parse()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := run(ctx, log); err != nil {
		log.Error("service failed", "error", err)
		os.Exit(1)
	}
	log.Info("service ended")
}

// run serves until ctx ends. Then its deferred calls end everything in the opposite order: nothing ends before its users.
func run(ctx context.Context, log *slog.Logger) error {
	if *servers == "" {
		srv, err := zktest.StartAddr("127.0.0.1:0")
		if err != nil {
			return err
		}
		defer srv.Close()
		*servers = srv.Addr()
	}
	spans, flush, err := tracing(log)
	if err != nil {
		return err
	}
	defer flush()

	// Paths have ids in them, but the names in metrics and spans must be few.
	paths := []string{"/orders/*/lock"}
	metrics := zkprom.New(zkprom.WithPaths(paths...))
	traces := zkotel.New(zkotel.WithTracerProvider(spans), zkotel.WithPaths(paths...), zkotel.WithPropagation())
	s, err := zksync.Connect(ctx, *servers, zksync.WithName("service"), zksync.WithLogger(log),
		zksync.WithTracer(zksync.Tracers(metrics, traces)))
	if err != nil {
		if ctx.Err() != nil { // SIGTERM has come first, and is no failure
			return nil
		}
		return err
	}
	defer s.Close() // it releases what is still held: other processes need not wait until the session expires

	defer reports(ctx, s, log)()
	return serve(ctx, log, newHandler(s, spans.Tracer("service"), metrics))
}

// reports has one process of the cluster write a report from time to time, until ctx ends: then another process takes over, while
// this one still answers requests. The result waits for a report that is being written.
func reports(ctx context.Context, s *zksync.Session, log *slog.Logger) (end func()) {
	jobs := zkcron.New(s, "/cron", zksync.WithName("leader-cron")) // the alerts leave leaders out: they hold for long
	jobs.Every("report", *every, func(_ context.Context, t zkcron.Tick) error {
		log.Info("report", "job", "report", "token", t.Token.String())
		return nil
	})
	ctx, cancel := context.WithCancel(ctx) // serve may fail
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := jobs.Run(ctx); ctx.Err() == nil {
			log.Error("no more reports", "error", err)
		}
	}()
	return func() { cancel(); <-ended }
}

// serve answers requests until ctx ends, and then finishes those that have begun.
func serve(ctx context.Context, log *slog.Logger, h *handler) error {
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	log.Info("service listens", "address", l.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("service ends", "drain", drain.String())
	h.ends.Store(true)
	time.Sleep(*drain)
	// With the drain, the end of the session and that of the spans it is less than the 30 s that Kubernetes gives.
	within, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return srv.Shutdown(within)
}
