package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-menagerie/menagerie/zksync"
)

// handler answers all requests.
type handler struct {
	http.ServeMux
	s     *zksync.Session
	spans trace.Tracer
	ends  atomic.Bool // SIGTERM has come
}

func newHandler(s *zksync.Session, spans trace.Tracer, metrics prometheus.Collector) *handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	h := &handler{s: s, spans: spans}
	h.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	h.HandleFunc("GET /ready", h.ready)
	h.HandleFunc("POST /orders/{id}/pay", h.traced(h.pay))
	return h
}

// traced gives a request a span, whose children are the spans of its locks.
func (h *handler) traced(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, span := h.spans.Start(r.Context(), r.Pattern)
		defer span.End()
		f(w, r.WithContext(ctx))
	}
}

// ready is for the load balancer: a process that ends gets no more requests, although its locks still work.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	if h.ends.Load() {
		http.Error(w, "the service ends", http.StatusServiceUnavailable)
		return
	}
	zksync.HealthHandler(h.s).ServeHTTP(w, r)
}

var orderID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// pay has an order paid. The lock keeps other processes and requests from charging for the same order at the same time.
func (h *handler) pay(w http.ResponseWriter, r *http.Request) {
	if !orderID.MatchString(r.PathValue("id")) { // it becomes a part of a path
		http.Error(w, "an order is named by letters, digits, - and _", http.StatusBadRequest)
		return
	}
	order := "/orders/" + r.PathValue("id")
	wait, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	lease, err := zksync.NewMutex(h.s, order+"/lock").LockContext(wait)
	if err != nil { // it says who holds the lock, and for how long
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer lease.Unlock()
	// The lease's context ends if the lock is lost. If this process is paused and does not see that, the servers refuse the write.
	paid := &zk.CreateRequest{Path: order + "/paid", Data: []byte(lease.Token().String()), Acl: zk.WorldACL(zk.PermAll)}
	_, err = lease.Guard(r.Context(), &zk.CheckVersionRequest{Path: paid.Path, Version: -1})
	switch {
	case err == nil:
		err = zk.ErrNodeExists
	case errors.Is(err, zk.ErrNoNode): // nobody has charged for it yet
		if err = h.charge(lease.Context()); err == nil {
			_, err = lease.Guard(r.Context(), paid)
		}
	}
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		http.Error(w, "it is paid already", http.StatusConflict)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "paid under token", lease.Token())
	}
}

// charge is slow, and may be called twice for an order, if this process dies before it writes that: the bank knows the number.
func (h *handler) charge(ctx context.Context) error {
	ctx, span := h.spans.Start(ctx, "charge") // a child of the hold
	defer span.End()
	select {
	case <-time.After(*charge):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
