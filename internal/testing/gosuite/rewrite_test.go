package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const sample = `package sync_test

import (
	"fmt"
	"internal/testenv"
	"runtime"
	. "sync"
	"testing"
)

func hammer(m *Mutex) { m.Lock(); m.Unlock() }

func TestA(t *testing.T) {
	var m Mutex
	hammer(&m)
	w := WaitGroup{}
	w.Wait()
	func(o *Once, g *WaitGroup) { fmt.Println(&o) }(new(Once), &w)
	c := NewCond(&Mutex{})
	for i := 0; i < 1000; i++ {
		c.Signal()
	}
	collect()
}

func TestB(t *testing.T) { internal() }

func internal() { Runtime_Semacquire(nil) }

func collect() { runtime.GC() }

func BenchmarkA(b *testing.B) { testenv.Skip(b) }
`

const rewritten = `package sync_test

import fmt "fmt"
import . "example/sync"
import testing "testing"

func hammer(m *Mutex) { m.Lock(); m.Unlock() }

func TestA(t *testing.T) {
	var m = NewMutex()
	hammer(m)
	w := NewWaitGroup()
	w.Wait()
	func(o *Once, g *WaitGroup) { fmt.Println(&o) }(NewOnce(), w)
	c := NewCond(NewMutex())
	for i := 0; i < 10; i++ {
		c.Signal()
	}
	collect()
}

func collect() {}
`

func of(t *testing.T, spoil func(*suite)) *work {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a_test.go"), []byte(sample), 0o644))
	s := &suite{
		name: "sync", dir: dir, files: []string{"a_test.go"}, exchanged: []string{"Mutex", "Once", "WaitGroup"}, others: []string{"Cond"},
		instead: map[string]string{"sync": "example/sync"}, bodies: map[string]string{"collect": "func collect() {}"},
		changes: []change{{"TestA", "i < 1000", "i < 10", ""}},
		dropped: []verdict{{test: "TestB", uses: "Runtime_Semacquire"}},
		used:    map[string]bool{},
	}
	spoil(s)
	return &work{suite: s, dir: filepath.Join(dir, "out")}
}

func TestZeroValuesBecomeConstructors(t *testing.T) {
	w := of(t, func(*suite) {})
	require.NoError(t, w.prepare())
	require.Equal(t, []string{"TestA"}, w.tests)
	require.Equal(t, []string{"BenchmarkA"}, w.left)
	text, err := os.ReadFile(filepath.Join(w.dir, "a_test.go"))
	require.NoError(t, err)
	require.Equal(t, rewritten, string(text))
}

func TestAListThatIsOutOfDateIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*suite){
		`TestA has no "i < 999"`:                             func(s *suite) { s.changes[0].old = "i < 999" },
		"TestC is changed, and does not exist":               func(s *suite) { s.changes[0].in = "TestC" },
		"TestC is dropped, and does not exist":               func(s *suite) { s.dropped[0].test = "TestC" },
		"TestB is dropped because of x, and does not use it": func(s *suite) { s.dropped[0].uses = "x" },
		"TestC is said to differ, and does not exist":        func(s *suite) { s.differs = []verdict{{test: "TestC"}} },
		"mend is replaced, and nothing uses it":              func(s *suite) { s.bodies["mend"] = "func mend() {}" },
	} {
		require.ErrorContains(t, of(t, spoil).prepare(), want)
	}
}
