package codec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/errs"
)

func TestValuesComeBack(t *testing.T) {
	type point struct{ X, Y int }
	data, err := Encode(JSON, point{1, 2}, 100)
	require.NoError(t, err)
	p, err := Decode[point](JSON, data, "/a")
	require.NoError(t, err)
	require.Equal(t, point{1, 2}, p)

	data, err = Encode(Raw, "as \x00 it is", 0)
	require.NoError(t, err)
	s, err := Decode[string](Raw, data, "/a")
	require.NoError(t, err)
	require.Equal(t, "as \x00 it is", s)
	b, err := Decode[[]byte](Raw, data, "/a")
	require.NoError(t, err)
	require.Equal(t, []byte("as \x00 it is"), b)
	data[0] = 'x'
	require.Equal(t, byte('a'), b[0], "the caller may keep it")
}

func TestWhatCannotBeEncodedIsMisuse(t *testing.T) {
	for _, c := range []struct {
		codec Codec
		value any
		text  string
	}{
		{JSON, func() {}, "cannot be encoded"},
		{Raw, 3, "a value of type int; zksync.Raw takes []byte and string"},
		{Raw, make([]byte, Limit-99), "takes 1048476 bytes, and the servers accept 1048575 in a request, of which 100 are needed otherwise"},
	} {
		_, err := Encode(c.codec, c.value, 100)
		require.ErrorIs(t, err, errs.ErrMisuse)
		require.ErrorContains(t, err, c.text)
	}
	_, err := Encode(Raw, make([]byte, Limit-100), 100)
	require.NoError(t, err)
	_, err = Decode[int](Raw, nil, "/a/b")
	require.ErrorContains(t, err, "the data of the node /a/b cannot be decoded: a value of type *int")
	v, err := Decode[struct{ X, Y int }](JSON, []byte(`{"X":1,"Y":"no"}`), "/a/b")
	require.Error(t, err)
	require.Zero(t, v)
}
