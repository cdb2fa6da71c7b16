package engine

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scaled is something that shall cost the same for each element, however many there are.
type scaled struct {
	name string
	// prepare makes what work needs; work is measured.
	prepare func(t testing.TB, n int) (work func())
	most    int // elements; more would only be slow to prepare
}

// perElement returns the least processor time of several tries, divided by the number of elements.
func (c *scaled) perElement(t testing.TB, n, tries int) time.Duration {
	best := time.Duration(math.MaxInt64)
	for range tries {
		one := &try{TB: t}
		work := c.prepare(one, n)
		runtime.GC()
		begin := processorTime()
		work()
		best = min(best, processorTime()-begin)
		one.end()
	}
	return best / time.Duration(n)
}

// try is a part of a test that cleans up at its own end: what earlier tries have left would cost the collector time.
type try struct {
	testing.TB
	cleanups []func()
}

func (t *try) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (t *try) end() {
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

func TestNothingCostsMoreForEachTheMoreThereAre(t *testing.T) {
	const few, many = 250, 2500
	for _, c := range scales {
		t.Run(c.name, func(t *testing.T) {
			// What costs next to nothing may cost twice that when the machine is busy. A nanosecond for each pair
			// is beyond the limit all the same.
			one := max(c.perElement(t, few, 3), time.Microsecond)
			ten := c.perElement(t, many, 3)
			// With the square of the number it would be ten times as much; memory that no cache holds makes it
			// two or three times. A machine that is busy with other things can only make a try more expensive.
			for tries := 3; ten >= 5*one && tries < 30; tries++ {
				ten = min(ten, c.perElement(t, many, 1))
			}
			require.Less(t, ten, 5*one, "for each of %d, and for each of %d", many, few)
		})
	}
}

// BenchmarkScale shows the curves:
//
//	go test ./zktest/internal/engine -run '^$' -bench Scale -benchtime 1x
func BenchmarkScale(b *testing.B) {
	for _, c := range scales {
		for _, n := range []int{1000, 3000, 10_000, 30_000, 100_000} {
			if n > c.most {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", strings.ReplaceAll(c.name, " ", "_"), n), func(b *testing.B) {
				for b.Loop() {
					b.ReportMetric(float64(c.perElement(b, n, 3).Nanoseconds()), "ns/element")
				}
			})
		}
	}
}
