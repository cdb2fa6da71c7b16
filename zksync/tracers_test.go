package zksync_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// nested notes the names of the tracers whose contexts it finds.
type nested struct {
	name string
	d    *diary
}

type nestedKey struct{}

func (n nested) names(ctx context.Context) string {
	names, _ := ctx.Value(nestedKey{}).(string)
	return names
}

func (n nested) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context {
	n.d.write("%s: start in %q", n.name, n.names(ctx))
	return context.WithValue(ctx, nestedKey{}, n.names(ctx)+n.name)
}

func (n nested) AcquireEnd(ctx context.Context, data zksync.AcquireEndData) {
	n.d.write("%s: end in %q, %v", n.name, n.names(ctx), data.Err)
}

type nestedRelease struct{ nested }

func (n nestedRelease) Release(ctx context.Context, _ zksync.ReleaseData) {
	n.d.write("%s: release in %q", n.name, n.names(ctx))
}

type nestedOpened struct{ nestedRelease }

func (n nestedOpened) Opened(*zksync.Session) { n.d.write("%s: opened", n.name) }

func TestTracersAreCalledInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		one, two, three := nested{"a", d}, nestedRelease{nested{"b", d}}, nestedOpened{nestedRelease{nested{"c", d}}}
		all := zksync.Tracers(nil, zksync.Tracers(one, nil, two), three)
		l, err := zksync.NewMutex(zktest.Run(t).Session(t, zksync.WithTracer(all)), "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Unlock())
		require.Equal(t, []string{
			`c: opened`,
			`a: start in ""`, `b: start in "a"`, `c: start in "ab"`,
			`a: end in "abc", <nil>`, `b: end in "abc", <nil>`, `c: end in "abc", <nil>`,
			`b: release in "abc"`, `c: release in "abc"`,
		}, d.take())

		ctx := all.AcquireStart(t.Context(), zksync.AcquireStartData{}) // also without a session
		all.AcquireEnd(ctx, zksync.AcquireEndData{})
		require.Equal(t, []string{
			`a: start in ""`, `b: start in "a"`, `c: start in "ab"`,
			`a: end in "abc", <nil>`, `b: end in "abc", <nil>`, `c: end in "abc", <nil>`,
		}, d.take())
	})
}

func TestTracersOfOneOrNone(t *testing.T) {
	require.Nil(t, zksync.Tracers())
	require.Nil(t, zksync.Tracers(nil, zksync.Tracers()))
	require.Equal(t, plain{}, zksync.Tracers(nil, plain{}))
}
