package zkotel_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-menagerie/menagerie/observe/zkotel"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

func TestThePageShowsTheTracesOfTwoRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		names := zkotel.WithPaths("/orders/*/lock")
		a, b := start(t, srv, zkotel.WithPropagation(), names), start(t, srv, zkotel.WithPropagation(), names)
		began := time.Now()
		pay := func(p *process, takes time.Duration) {
			ctx, request := p.provider.Tracer("shop").Start(t.Context(), "POST /orders/{id}/pay")
			defer request.End()
			l := lock(t, ctx, zksync.NewMutex(p.Session, "/orders/7/lock"))
			_, charge := p.provider.Tracer("shop").Start(l.Context(), "charge")
			time.Sleep(takes)
			charge.End()
			require.NoError(t, l.Unlock())
		}
		go pay(a, 4*time.Second)
		time.Sleep(time.Second)
		pay(b, 2*time.Second)

		ids := make(map[trace.SpanID]string)
		var text strings.Builder
		for i, p := range []*process{a, b} {
			fmt.Fprintf(&text, "shop %d                               from   took\n", i+1)
			show(&text, p.spans.GetSpans(), trace.SpanID{}, "", began, ids)
		}
		page, err := os.ReadFile("../../docs/traces.md")
		require.NoError(t, err)
		require.Contains(t, string(page), "```\n"+text.String()+"```\n", "%s", &text)
	})
}

// show writes the spans below a parent, and gives them numbers in ids.
func show(to *strings.Builder, spans tracetest.SpanStubs, parent trace.SpanID, indent string, began time.Time, ids map[trace.SpanID]string) {
	for _, s := range spans {
		if s.Parent.SpanID() != parent {
			continue
		}
		id := fmt.Sprint("#", len(ids)+1)
		ids[s.SpanContext.SpanID()] = id
		fmt.Fprintf(to, "  %-34s %2.0f s  %3.0f s", id+" "+indent+s.Name, s.StartTime.Sub(began).Seconds(), took(s).Seconds())
		for _, key := range []string{"lock.outcome", "lock.end"} {
			if v, ok := attributes(s)[key]; ok {
				fmt.Fprint(to, "  ", v)
			}
		}
		for _, l := range s.Links {
			fmt.Fprint(to, ", waited for ", ids[l.SpanContext.SpanID()])
		}
		fmt.Fprintln(to)
		show(to, spans, s.SpanContext.SpanID(), indent+"  ", began, ids)
	}
}
