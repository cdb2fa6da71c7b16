package zkotel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// The limits of the buckets. A hand-over inside a process takes microseconds, a grant some milliseconds; what takes hours is seen in minutes.
var (
	seconds = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
	entries = metric.WithExplicitBucketBoundaries(0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
)

type metrics struct {
	acquire, hold metric.Float64Histogram
	waiters       metric.Int64Histogram
}

func metricsOf(m metric.Meter) (all metrics) {
	duration := func(name, what string) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), seconds)
		if err != nil {
			otel.Handle(err)
			return noop.Float64Histogram{}
		}
		return h
	}
	all.acquire = duration("lock.acquire.duration", "How long acquisitions took, also those that ended without a lock.")
	all.hold = duration("lock.hold.duration", "How long locks were held.")
	var err error
	all.waiters, err = m.Int64Histogram("lock.waiters", metric.WithUnit("{entry}"), metric.WithDescription("Entries ahead of an acquisition when it queued."), entries)
	if err != nil {
		otel.Handle(err)
		all.waiters = noop.Int64Histogram{}
	}
	return all
}

// acquired records an acquisition. ctx has its span, which an exemplar names.
func (m metrics) acquired(ctx context.Context, o object, outcome string, waited time.Duration, position int) {
	m.acquire.Record(ctx, waited.Seconds(), metric.WithAttributeSet(o.labels(attribute.String("lock.outcome", outcome))))
	if position >= 0 {
		m.waiters.Record(ctx, int64(position), metric.WithAttributeSet(o.labels()))
	}
}

// held records a hold. ctx has its span.
func (m metrics) held(ctx context.Context, o object, end string, held time.Duration) {
	m.hold.Record(ctx, held.Seconds(), metric.WithAttributeSet(o.labels(attribute.String("lock.end", end))))
}
