package zksync_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/stretchr/testify/require"
)

type cache struct {
	mu    *zksync.Mutex // was: mu sync.Mutex
	loads int
}

func newCache(s *zksync.Session) *cache {
	return &cache{mu: zksync.NewMutex(s, "/locks/cache-refill")}
}

func (c *cache) refill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loads++
}

// A service has a sync.Mutex and now runs in ten processes: the field's type and the constructor
// change, and the code that locks does not.
func ExampleNewMutex() {
	srv := zktest.Start()
	defer srv.Close()
	s := connect(srv)
	defer s.Close()

	c := newCache(s)
	var all sync.WaitGroup
	for range 10 {
		all.Go(c.refill)
	}
	all.Wait()
	fmt.Println(c.loads)
	// Output: 10
}

// What README shows is this file's.
func TestTheReadmesDropInIsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "### The drop-in\n")
	require.True(t, found)
	_, code, _ := strings.Cut(section, "```go\n")
	code, _, found = strings.Cut(code, "```\n")
	require.True(t, found)
	here, err := os.ReadFile("example_dropin_test.go")
	require.NoError(t, err)
	require.Contains(t, string(here), code)
}
