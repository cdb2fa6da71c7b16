package zkprom_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-menagerie/menagerie/observe/zkprom"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// connect opens a session whose metrics are at /metrics of the process.
func connect(ctx context.Context, servers string) (*zksync.Session, error) {
	metrics := zkprom.New(zkprom.WithPaths("/orders/*/lock"))
	if err := prometheus.Register(metrics); err != nil {
		return nil, err
	}
	http.Handle("/metrics", promhttp.Handler())
	return zksync.Connect(ctx, servers, zksync.WithTracer(metrics))
}

func Example() {
	srv := zktest.Start()
	defer srv.Close()
	ctx := context.Background()
	s, err := connect(ctx, srv.Addr())
	if err != nil {
		panic(err)
	}
	defer s.Close()
	stock := zksync.NewMutex(s, "/locks/stock", zksync.WithName("stock"))
	order := zksync.NewMutex(s, "/orders/4711/lock")
	for _, m := range []*zksync.Mutex{stock, order} {
		l, err := m.LockContext(ctx)
		if err != nil {
			panic(err)
		}
		defer l.Unlock()
	}

	answer := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "menagerie_held{") || strings.HasPrefix(lines.Text(), "menagerie_session_state{") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// menagerie_held{kind="lock",name="/orders/*/lock"} 1
	// menagerie_held{kind="lock",name="stock"} 1
	// menagerie_session_state{state="closed"} 0
	// menagerie_session_state{state="connected"} 1
	// menagerie_session_state{state="lost"} 0
	// menagerie_session_state{state="suspended"} 0
}
