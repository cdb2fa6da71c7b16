package layout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
)

func TestTheNodesOfAPathTellItsType(t *testing.T) {
	const entry = "_c_2d4a1c1e-6f0f-8b7e-9d4f-5a1b2c3d4e5f"
	for _, c := range []struct {
		want, data string
		children   []string
	}{
		{"", "", nil},
		{"", "somebody's", []string{"zkmapper", "lock-x", "README", "phase-1", "closed-of-3x"}},
		{"zklatch", entry + "-lock-", []string{entry + "-lock-0000000003", "counts", "closed-of-3"}},
		{"zkbarrier.DoubleBarrier", `{"parties":3}`, []string{"parties"}},
		{Map, entry + "-lock-", []string{entry + "-lock-0000000003", Map}},
		{Set, `{"total":3}`, []string{Set}},
		{"zklatch", `{"total":3}`, []string{"counts"}},
		{"zkbarrier", `{"parties":3,"generation":2}`, nil},
		{"zkphaser", `{"phase":3}`, nil},
		{"zksemaphore", `{"permits":3,"capacity":3}`, []string{"queue"}},
		{"zksemaphore", `{"permits":3}`, nil},
		{"zksync.Mutex", entry + "-lock-", []string{entry + "-lock-0000000003", "README"}},
		{"zkrwmutex", "", []string{entry + "-__WRIT__0000000003"}},
		{"zkcond", "", []string{entry + "-wait-0000000000000001-00000001"}},
		{"zklatch.Gate", "", []string{"closed"}},
		{"zkwaitgroup", "", []string{"dead", "round"}},
		{"zkonce", "", []string{"result"}},
	} {
		require.Equal(t, c.want, TypeOf([]byte(c.data), c.children), "%s %v", c.data, c.children)
	}
	err := Refuse(Map, Queue)
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.EqualError(t, err, "zksync: misuse: the path is that of a zkqueue, not of a zkmap; use another path")
}
