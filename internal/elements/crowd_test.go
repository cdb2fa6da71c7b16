package elements

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What an object skips because others were there is in its way again after a second, also if those are gone by now, so that it never meets them in this view.
func TestAViewThatSkipsElementsIsUsedForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &View{}
		for seq := range int32(4000) {
			v.free = append(v.free, element{name: namePrefix(0, 0), seq: seq})
		}
		c := &crowd{score: 2, met: time.Now(), ahead: 3}
		p, _, err := v.Pop(c)
		require.NoError(t, err)
		require.NotNil(t, p)
		require.False(t, v.stale())
		time.Sleep(lasting + time.Nanosecond)
		require.False(t, c.now())
		require.True(t, v.stale())
	})
}
