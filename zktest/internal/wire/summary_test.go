package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAveragesAreWrittenAsJavaWritesThem(t *testing.T) {
	for want, s := range map[string]Summary{
		"0.0": {}, "1.875": {N: 8, Sum: 15}, "3.0": {N: 2, Sum: 6}, "0.3333": {N: 3, Sum: 1}, "0.6667": {N: 3, Sum: 2},
		"5.0E-4": {N: 2000, Sum: 1}, "0.001": {N: 1000, Sum: 1}, "0.0313": {N: 32, Sum: 1}, "12.0001": {N: 10000, Sum: 120001},
		"1.0E-4": {N: 10001, Sum: 1}, "1.0": {N: 100000, Sum: 99999},
	} {
		require.Equal(t, want, s.Average(), "%+v", s)
	}
}
