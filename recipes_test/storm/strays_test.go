package storm_test

import (
	"runtime"
	"strings"
)

// checkStrays looks for goroutines of the bubble that nobody has ended. The server has none when nobody is connected.
func (w *world) checkStrays() {
	var left []string
	buf := make([]byte, 64<<10)
	for range 1000 { // one that has ended is there until the scheduler has buried it
		n := runtime.Stack(buf, true)
		if n == len(buf) {
			buf = make([]byte, 2*n)
			continue
		}
		if left = strays(string(buf[:n])); len(left) == 0 {
			return
		}
		runtime.Gosched()
	}
	w.must(false, "%d goroutines are left over:\n%s", len(left), strings.Join(left[:min(len(left), 5)], "\n\n"))
}

// strays are the goroutines of the bubble of the first one, which asks, but for that and what runs the test.
func strays(text string) (left []string) {
	stacks := strings.Split(text, "\n\n")
	_, bubble, _ := strings.Cut(stacks[0], "synctest bubble ")
	bubble, _, _ = strings.Cut(bubble, "]")
	for _, s := range stacks[1:] {
		if strings.Contains(s, "synctest bubble "+bubble+"]") && !strings.Contains(s, "synctest.Test") {
			left = append(left, s)
		}
	}
	return left
}
