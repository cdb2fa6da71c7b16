package proving

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// Calm opens a session that stays alive however busy the machine is.
func Calm(v *Env) *zksync.Session {
	v.T.Helper()
	return v.Session(zksync.WithTimeout(time.Minute))
}

// Counted is how many requests f makes, until nothing happens any more.
func (v *Env) Counted(f func()) int {
	v.T.Helper()
	v.Quiet()
	before := v.Requests()
	tell := v.tellOperations()
	f()
	v.Quiet()
	tell()
	return v.Requests() - before
}

// Costs checks how many requests f makes.
func (v *Env) Costs(want int, f func(), why ...any) {
	v.T.Helper()
	require.Equal(v.T, want, v.Counted(f), why...)
}

// CostsAtMost checks that f makes no more requests than that.
func (v *Env) CostsAtMost(most int, f func(), why ...any) {
	v.T.Helper()
	require.LessOrEqual(v.T, v.Counted(f), most, why...)
}
