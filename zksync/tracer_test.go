package zksync

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fields will be added to what a Tracer is given. That breaks nobody only while
// nobody can write such a value without naming its fields.
func TestTraceDataCanGrow(t *testing.T) {
	for _, data := range []any{
		AcquireStartData{}, AcquireEndData{}, WaitData{}, ReleaseData{}, LossData{}, StateChangeData{},
		RequestData{}, DeliveryData{}, TickData{}, AssignData{},
	} {
		first := reflect.TypeOf(data).Field(0)
		require.Equal(t, "_", first.Name, "%T", data)
		require.Zero(t, first.Type.Size(), "%T", data)
	}
}
