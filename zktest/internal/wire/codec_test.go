package wire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

func TestEveryRecordSurvivesEncodingAndDecoding(t *testing.T) {
	e := &Encoder{}
	st := Stat{Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11}
	acl := []ACL{{Perms: PermRead, ID: ID{Scheme: "world", Name: "anyone"}}, {Perms: PermAll, ID: ID{Scheme: "digest", Name: "u:h"}}}
	e.Int32(-7)
	e.Int64(1 << 40)
	e.Bool(true)
	e.Buffer(nil)
	e.Buffer([]byte{})
	e.Text("ä")
	e.Texts([]string{"a", ""})
	e.ACL(acl)
	e.Stat(st)
	d := NewDecoder(e.B)
	require.EqualValues(t, -7, d.Int32())
	require.EqualValues(t, 1<<40, d.Int64())
	require.True(t, d.Bool())
	require.Nil(t, d.Buffer())
	require.Equal(t, []byte{}, d.Buffer())
	require.Equal(t, "ä", d.Text())
	require.Equal(t, []string{"a", ""}, d.Texts())
	require.Equal(t, acl, d.ACL())
	require.Equal(t, st, d.Stat())
	require.NoError(t, d.Err())
	require.Empty(t, d.Rest())
}

func TestTheDecoderNeverReadsPastItsFrameNorBelievesALength(t *testing.T) {
	for _, frame := range [][]byte{
		nil, {0}, {0, 0, 0, 9}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xfe}, {0, 0, 0, 2, 1},
	} {
		for name, read := range map[string]func(*Decoder){
			"string":  func(d *Decoder) { d.Text() },
			"buffer":  func(d *Decoder) { d.Buffer() },
			"int64":   func(d *Decoder) { d.Int64() },
			"strings": func(d *Decoder) { d.Texts(); d.Int32() },
			"acl":     func(d *Decoder) { d.ACL(); d.Int32() },
		} {
			d := NewDecoder(frame)
			read(d)
			require.ErrorIs(t, d.Err(), jute.ErrMalformed, "%s of %x", name, frame)
			require.Zero(t, d.Int32(), "a failed decoder reads zeros")
		}
	}
}
