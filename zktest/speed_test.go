package zktest_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// The middle one of many is not impressed by what else the machine does.
func TestAServerStartsAndListensInLessThanAMillisecond(t *testing.T) {
	took := make([]time.Duration, 201)
	for i := range took {
		begin := time.Now()
		srv := zktest.Start()
		require.NotEmpty(t, srv.Addr())
		took[i] = time.Since(begin)
		srv.Close()
	}
	slices.Sort(took)
	require.Less(t, took[len(took)/2], time.Millisecond)
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		zktest.Start().Close()
	}
}

func BenchmarkStartAndListen(b *testing.B) {
	for b.Loop() {
		srv := zktest.Start()
		srv.Addr()
		srv.Close()
	}
}

// BenchmarkStartToSession ends with a client that has a session.
func BenchmarkStartToSession(b *testing.B) {
	for b.Loop() {
		srv := zktest.Start()
		srv.Connect(b, 10*time.Second).Close()
		srv.Close()
	}
}

// BenchmarkTree prints a tree of 100 000 nodes.
func BenchmarkTree(b *testing.B) {
	srv := zktest.Start()
	defer srv.Close()
	for range 100_000 {
		srv.Create("/n-", nil, 2, 0)
	}
	for b.Loop() {
		srv.Tree()
	}
}
