package zksync_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// The type is made of an internal one, and has the methods of what that embeds.
func TestAMutexHasNoMethodOfTheInside(t *testing.T) {
	var names []string
	m := reflect.TypeFor[*zksync.Mutex]()
	for i := range m.NumMethod() {
		names = append(names, m.Method(i).Name)
	}
	require.Equal(t, []string{"Contenders", "Do", "Lease", "Lock", "LockContext", "State", "String", "TryLock", "TryLockContext", "Unlock"}, names)
}
