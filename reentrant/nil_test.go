package reentrant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/reentrant"
	"github.com/go-menagerie/menagerie/zksync"
)

func TestALockThatIsNilIsAMisuse(t *testing.T) {
	m, rw := reentrant.NewMutex(nil), reentrant.NewRWMutex(nil)
	_, err := m.LockContext(t.Context())
	require.ErrorIs(t, err, zksync.ErrMisuse)
	require.Zero(t, m.HoldCount())
	_, err = rw.LockContext(t.Context())
	require.ErrorIs(t, err, zksync.ErrMisuse)
	_, err = rw.RLockContext(t.Context())
	require.ErrorIs(t, err, zksync.ErrMisuse)
	for _, f := range []func(){m.Lock, rw.Lock, rw.RLock} {
		err, _ := catch(f).(error)
		require.ErrorIs(t, err, zksync.ErrMisuse)
	}
}

func catch(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}
