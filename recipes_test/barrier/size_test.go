package barrier_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zkbarrier"
	"github.com/go-menagerie/menagerie/zksync"
)

// All leave in one request, of which the servers take no more than 1 MB.
func TestABarrierWhosePathIsTooLongForItsPartiesIsMisuse(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		path := "/" + strings.Repeat("x", 30_000)
		for _, parties := range []int{12, 13, 26} { // with a word to each, and without
			var all []*awaiting
			for range parties {
				all = append(all, await(context.Background(), zkbarrier.NewBarrier(s, path+fmt.Sprint(parties), parties)))
			}
			leave(v, all...)
		}
		for _, parties := range []int{27, 40, 2000} {
			_, err := zkbarrier.NewBarrier(s, path, parties).Await(context.Background())
			require.ErrorIs(t, err, zksync.ErrMisuse)
			require.ErrorContains(t, err, "use a shorter path or fewer parties")
			require.ErrorContains(t, err, "1048575")
		}
	})
}
