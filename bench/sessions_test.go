package bench

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneErrorIsEnoughAndWhatIsOpenIsClosed(t *testing.T) {
	refused := errors.New("refused")
	turns := make(chan int, 3)
	for i := range 3 {
		turns <- i
	}
	var closed []int
	all, err := openAll(3, func() (int, error) {
		if i := <-turns; i > 0 {
			return i, refused
		}
		return 7, nil
	}, func(i int) { closed = append(closed, i) })
	require.Empty(t, all)
	require.EqualError(t, err, "refused")
	require.Equal(t, []int{7}, closed)
}
