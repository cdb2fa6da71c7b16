package zkprom

import (
	"context"

	"github.com/go-menagerie/menagerie/zksync"
)

// Delivery implements zksync.DeliveryTracer.
func (c *Collector) Delivery(_ context.Context, data zksync.DeliveryData) {
	name := c.names.of(data.Name, data.Path)
	begin(c.deliveries, []string{"put", "received", "acked", "nacked", "dead"}, name)
	c.deliveries.WithLabelValues(name, data.Event).Inc()
}

// Tick implements zksync.TickTracer.
func (c *Collector) Tick(_ context.Context, data zksync.TickData) {
	job := c.jobs.of(data.Job, "")
	begin(c.ticks, []string{"done", "failed", "panicked", "abandoned", "missed"}, job)
	n := 1
	if data.Outcome == "missed" {
		n = max(data.Missed, 1)
	}
	c.ticks.WithLabelValues(job, data.Outcome).Add(float64(n))
}

// Assign implements zksync.AssignTracer.
func (c *Collector) Assign(_ context.Context, data zksync.AssignData) {
	group := c.names.of(data.Name, data.Path)
	running, done, failed := c.items.WithLabelValues(group, "running"), c.items.WithLabelValues(group, "done"), c.items.WithLabelValues(group, "failed")
	switch data.Event {
	case "gained":
		running.Inc()
	case "given up":
		running.Dec()
	case "done":
		running.Dec()
		done.Inc()
	}
	if data.Err != nil {
		failed.Inc()
	}
}
