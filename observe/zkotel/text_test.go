package zkotel_test

import (
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/observe/zkotel"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// Exporters of OTLP drop a whole batch of spans for one text that is not UTF-8.
func TestAllTextIsUTF8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, zktest.Run(t), zkotel.WithPaths("/caf*"))
		l := lock(t, t.Context(), zksync.NewMutex(p.Session, "/a", zksync.WithName("caf\xe9")))
		require.NoError(t, l.Unlock())
		_, err := zksync.NewMutex(p.Session, "/caf\xe9").LockContext(t.Context()) // it is a misuse, and has a span
		require.Error(t, err)
		spans := p.spans.GetSpans()
		require.Len(t, spans, 3)
		for _, s := range spans {
			require.True(t, utf8.ValidString(s.Name), s.Name)
			require.True(t, utf8.ValidString(s.Status.Description), s.Status.Description)
			for _, a := range s.Attributes {
				require.True(t, utf8.ValidString(a.Value.AsString()), a)
			}
		}
		require.Equal(t, "caf\uFFFD", attributes(p.ended(t, 1, "acquire caf\uFFFD")[0])["lock.name"])
	})
}
