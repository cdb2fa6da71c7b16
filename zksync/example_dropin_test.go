package zksync_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
	"github.com/stretchr/testify/require"
)

type numbers struct {
	mu   *zksync.Mutex // was: mu sync.Mutex
	file string        // on a disk that all machines share
}

func newNumbers(s *zksync.Session, file string) *numbers {
	return &numbers{mu: zksync.NewMutex(s, "/locks/invoice-numbers"), file: file}
}

func (n *numbers) next() (int, error) { // as before
	n.mu.Lock()
	defer n.mu.Unlock()
	text, unread := os.ReadFile(n.file)
	last, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, errors.Join(unread, err)
	}
	return last + 1, os.WriteFile(n.file, []byte(strconv.Itoa(last+1)), 0o644)
}

// A service has a sync.Mutex and now runs in several processes: the field's type and the constructor
// change, and the code that locks does not. What the processes share is the file.
func ExampleNewMutex() {
	srv := zktest.Start()
	defer srv.Close()
	file := filepath.Join(os.TempDir(), "invoice-number-"+strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file)

	var all sync.WaitGroup
	for range 2 { // each session is a process
		s := connect(srv)
		defer s.Close()
		n := newNumbers(s, file)
		for range 10 {
			all.Go(func() {
				if _, err := n.next(); err != nil {
					fmt.Println(err)
				}
			})
		}
	}
	all.Wait()
	last, err := os.ReadFile(file)
	fmt.Println(string(last), err)
	// Output: 20 <nil>
}

// What README shows is this file's.
func TestTheReadmesDropInIsTheExample(t *testing.T) {
	readmeShows(t, "### The drop-in\n", "example_dropin_test.go")
}

// readmeShows checks that the first program below a heading of README is a part of a file.
func readmeShows(t *testing.T, heading, file string) {
	t.Helper()
	_, section, found := strings.Cut(readme(t), heading)
	require.True(t, found)
	_, code, _ := strings.Cut(section, "```go\n")
	code, _, found = strings.Cut(code, "```\n")
	require.True(t, found)
	here, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, strings.Contains(string(here), code), "README shows another program than %s:\n%s", file, code)
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}
