package lease

import (
	"testing"

	"github.com/petermattis/goid"
	"github.com/stretchr/testify/require"
)

// deep calls f below many frames: the text of the stack is long.
func deep(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	deep(n-1, f)
}

// The runtime does not promise these forms.
func TestTheRuntimeSaysWhichGoroutineThisIs(t *testing.T) {
	require.Equal(t, goid.Get(), current())
}

func TestTheRuntimeSaysWhichGoroutineStartedThisOne(t *testing.T) {
	for _, depth := range []int{0, 90, 300} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			deep(depth, func() {
				parent, known := startedBy()
				if !known || parent == current() {
					t.Errorf("%d, %v at depth %d", parent, known, depth)
				}
			})
		}()
		<-done
	}
	parent := current()
	got := make(chan int64)
	go func() {
		p, _ := startedBy()
		got <- p
	}()
	require.Equal(t, parent, <-got)
}

func TestAStackOfAnotherFormNamesNoGoroutine(t *testing.T) {
	for stack, want := range map[string]int64{
		"goroutine 7 [running]:\nmain.f()\n\t/a.go:1 +0x1\ncreated by main.main in goroutine 1\n\t/a.go:2 +0x1\n":     1,
		"goroutine 7 [running]:\nmain.f()\n\t/a.go:1 +0x1\ncreated by main.g[...].func1 in goroutine 42\n\t/a.go:2\n": 42,
		"goroutine 1 [running]:\nmain.main()\n\t/a.go:1 +0x1\n":                                                       0,
		"goroutine 7 [running]:\nmain.f()\n\t/a.go:1 +0x1\ncreated by main.main\n\t/a.go:2 +0x1\n":                    0,
		"goroutine 7 [running]:\nmain.f()\n\t/a.go:1\ncreated by main.main in goroutine x\n\t/a.go:2\n":               0,
		"": 0,
	} {
		got, known := creator([]byte(stack))
		require.Equal(t, want, got, stack)
		require.Equal(t, want != 0, known, stack)
	}
}
