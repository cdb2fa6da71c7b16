package zkotel_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/go-menagerie/menagerie/observe/zkotel"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// A request that locks has a span for its wait and one for its hold, whose work is a child of the hold.
func ExampleNew() {
	srv := zktest.Start()
	defer srv.Close()
	exporter := tracetest.NewInMemoryExporter() // a service exports to its collector
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	otel.SetTracerProvider(provider)

	ctx, servers := context.Background(), srv.Addr()
	tracer := zkotel.New(
		zkotel.WithPaths("/orders/*/lock"), // names for spans
		zkotel.WithPropagation(),           // links between processes
	)
	s, err := zksync.Connect(ctx, servers, zksync.WithTracer(tracer))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	ctx, request := provider.Tracer("shop").Start(ctx, "POST /orders/4711")
	lease, err := zksync.NewMutex(s, "/orders/4711/lock").LockContext(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, work := provider.Tracer("shop").Start(lease.Context(), "charge")
	work.End()
	if err := lease.Unlock(); err != nil {
		fmt.Println(err)
	}
	request.End()

	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// acquire /orders/*/lock
	// charge
	// hold /orders/*/lock
	// POST /orders/4711
}
