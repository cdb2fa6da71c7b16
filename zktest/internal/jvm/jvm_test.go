package jvm_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zktest/internal/jvm"
)

func TestNameHashesAreThoseOfTheJVM(t *testing.T) {
	require.EqualValues(t, 2112, jvm.Hash("Aa"))
	require.EqualValues(t, 2112, jvm.Hash("BB"))
	require.EqualValues(t, 96354, jvm.Hash("abc"))
	require.EqualValues(t, 228, jvm.Hash("ä"))
	require.EqualValues(t, uint32(0xd83d)*31+0xde00, jvm.Hash("\U0001F600"), "over UTF-16 units")
}

func TestTextIsAlwaysUTF8AndUTF8IsLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOf(rapid.ByteRange(0, 255)).Draw(t, "bytes")
		got := jvm.Text(p)
		require.True(t, utf8.ValidString(got))
		if utf8.Valid(p) {
			require.Equal(t, string(p), got)
		}
		require.NotEqual(t, "\xff", "which stands for no text at all", got)
	})
}
