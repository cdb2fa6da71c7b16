// Package zkprom gives Prometheus the metrics of locks, sessions, requests, queues, jobs and groups. A [Collector]
// is a zksync.Tracer, and a prometheus.Collector:
//
//	metrics := zkprom.New()
//	prometheus.MustRegister(metrics)
//	s, err := zksync.Connect(ctx, servers, zksync.WithTracer(metrics))
//
// docs/metrics.md lists the metrics, and says how to use the alerts and the dashboard.
package zkprom
