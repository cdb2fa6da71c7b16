package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/go-menagerie/menagerie/zktest"
)

// BenchmarkServer is what an operation costs on zktest, over TCP. The client allocates next to nothing, so that
// the bytes are the server's.
func BenchmarkServer(b *testing.B) {
	srv := zktest.Start()
	defer srv.Close()
	dial := func() (net.Conn, error) { return net.Dial("tcp", srv.Addr()) }
	for _, l := range workloads {
		for _, at := range loads {
			b.Run(fmt.Sprintf("%s/%d/%d", strings.ReplaceAll(l.name, " ", "_"), at.conns, at.window), func(b *testing.B) {
				b.ReportAllocs()
				clients, dir, err := prepare(dial, l, at)
				if err != nil {
					b.Fatal(err)
				}
				defer leave(clients)
				b.ResetTimer()
				if _, err := together(clients, l, dir, at, func(done int) bool { return done >= b.N/at.conns }); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
			})
		}
	}
}
