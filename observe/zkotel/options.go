package zkotel

import (
	"fmt"
	"path"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Option changes a default of [New].
type Option func(*settings)

type settings struct {
	traces    trace.TracerProvider
	meters    metric.MeterProvider
	patterns  []string
	propagate bool
}

// WithTracerProvider sets where spans go; the default is the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(s *settings) { s.traces = p }
}

// WithMeterProvider sets where metrics go; the default is the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(s *settings) { s.meters = p }
}

// WithPaths names the objects that have no zksync.WithName: the first pattern that matches the path of one is its
// name. A star stands for any part of a path but a slash, as in "/orders/*/lock": see path.Match. A malformed
// pattern panics. Further calls add patterns.
func WithPaths(patterns ...string) Option {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			panic(fmt.Sprintf("zkotel: the pattern %q: %v", p, err))
		}
	}
	return func(s *settings) { s.patterns = append(s.patterns, patterns...) }
}

// WithPropagation writes the traceparent of a sampled acquisition into its node, which everybody who may read the
// path can read; waiters in other processes then link to it. It costs a sampled waiter one more request.
func WithPropagation() Option {
	return func(s *settings) { s.propagate = true }
}

func settingsOf(opts []Option) settings {
	s := settings{traces: otel.GetTracerProvider(), meters: otel.GetMeterProvider()}
	for _, o := range opts {
		o(&s)
	}
	return s
}

// named is the name of an object, empty if it has none.
func (s *settings) named(name, at string) string {
	if name != "" {
		return text(name)
	}
	for _, p := range s.patterns {
		if ok, _ := path.Match(p, at); ok {
			return text(p)
		}
	}
	return ""
}

// text is s as an attribute can have it: exporters drop a whole batch for one text that is not UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
