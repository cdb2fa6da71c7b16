package once_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkonce"
)

// A Once for each request, as long as that lasts. The result of another one, which is in use, stays known.
func TestNothingIsLeftOfOncesThatAreNotUsedAnyMore(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		used := zkonce.New(s, proving.OncePath)
		done := func(o *zkonce.Once) {
			_, err := o.DoContext(context.Background(), func(context.Context) ([]byte, error) { return nil, nil })
			require.NoError(t, err)
		}
		done(used)
		done(used) // the first call after the run reads the result
		var dropped []weak.Pointer[zkonce.Once]
		for i := range 200 {
			o := zkonce.New(s, fmt.Sprint(proving.OncePath, i/2))
			dropped = append(dropped, weak.Make(o))
			done(o)
			if i%50 == 49 {
				runtime.GC()
			}
		}
		runtime.GC()
		time.Sleep(time.Minute)
		kept := slices.DeleteFunc(dropped, func(o weak.Pointer[zkonce.Once]) bool { return o.Value() == nil })
		require.LessOrEqual(t, len(kept), 1) // the newest may still be on the stack
		require.Less(t, v.Server.Watches(), 70)
		v.Costs(0, func() { done(used) })
	})
}
