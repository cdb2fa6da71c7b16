package bench

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkRequests reports what an operation costs on the in-process server, where only the requests say something. Who
// comes first is chance, so make bench-compare accepts a hundredth more; TestCosts leaves nothing to chance.
func BenchmarkRequests(b *testing.B) {
	for _, c := range []struct {
		scenario string
		clients  int
	}{{Async, 1}, {Contended, 8}, {Deep, 200}, {Readers, 17}, {Semaphore, 16}, {DoubleBarrier, 10}} {
		b.Run(fmt.Sprintf("%s/clients=%d", c.scenario, c.clients), func(b *testing.B) {
			srv, addr, _ := serve(b)
			s, _ := ScenarioNamed(c.scenario)
			var total Sample
			for b.Loop() {
				path := fmt.Sprintf("/%d", total.Ops)
				srv.Load(map[string]string{path: ""})
				sample, err := menagerie.Run(context.Background(), Slice{Scenario: s, Clients: c.clients, Duration: 200 * time.Millisecond,
					Path: path, Servers: addr, Timeout: 10 * time.Second})
				if err != nil {
					b.Fatal(err)
				}
				total.add(sample)
			}
			b.ReportMetric(0, "ns/op") // the length of a slice is given
			b.ReportMetric(float64(total.Requests)/float64(total.Ops), "requests/op")
		})
	}
}
