package proving

import (
	"testing"
	"testing/synctest"
)

// Tests in virtual time run side by side, and each counts for itself.
func TestGoroutinesOfOtherBubblesDoNotCount(t *testing.T) {
	begin, begun, end, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		<-begin
		synctest.Test(t, func(*testing.T) {
			close(begun)
			<-end
		})
	}()
	defer func() { <-ended }()
	defer close(end)
	bubble(t, func(_ *testing.T, v *Env) {
		before := v.Goroutines()
		close(begin)
		<-begun
		v.GoroutinesBack(before)
	}, nil)
}
