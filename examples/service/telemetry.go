package main

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// tracing exports spans to standard output, some seconds after they end. flush exports the rest.
func tracing(log *slog.Logger) (spans *sdktrace.TracerProvider, flush func(), err error) {
	exporter, err := stdouttrace.New()
	if err != nil {
		return nil, nil, err
	}
	spans = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	return spans, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := spans.Shutdown(ctx); err != nil {
			log.Error("spans are lost", "error", err)
		}
	}, nil
}
