package jute_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

func TestEveryFieldSurvivesAppendingAndDecoding(t *testing.T) {
	st := jute.Stat{
		Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7,
		EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
	}
	b := jute.AppendInt32(nil, -7)
	b = jute.AppendInt64(b, 1<<40)
	b = jute.AppendBool(jute.AppendBool(b, true), false)
	b = jute.AppendBuffer(b, nil)
	b = jute.AppendBuffer(b, []byte{})
	b = jute.AppendText(b, []byte(nil))
	b = jute.AppendText(b, "ä")
	size := len(b)
	b = jute.AppendStat(b, st)
	require.Len(t, b, size+jute.StatSize)

	d := jute.Decode(b)
	require.EqualValues(t, -7, d.Int32())
	require.EqualValues(t, 1<<40, d.Int64())
	require.True(t, d.Bool())
	require.False(t, d.Bool())
	require.Nil(t, d.Buffer())
	require.Equal(t, []byte{}, d.Buffer())
	require.Equal(t, []byte{}, d.Text())
	require.Equal(t, "ä", string(d.Text()))
	require.Equal(t, st, d.Stat())
	require.NoError(t, d.Err())
	require.Empty(t, d.Rest())
}

func TestADecoderNeverReadsPastItsBodyNorBelievesALength(t *testing.T) {
	for _, body := range [][]byte{
		nil, {0}, {0, 0, 0, 9}, {0x7f, 0xff, 0xff, 0xff}, {0xff, 0xff, 0xff, 0xfe}, {0, 0, 0, 2, 1},
	} {
		for name, read := range map[string]func(*jute.Decoder){
			"text":   func(d *jute.Decoder) { d.Text() },
			"buffer": func(d *jute.Decoder) { d.Buffer() },
			"int64":  func(d *jute.Decoder) { d.Int64() },
			"stat":   func(d *jute.Decoder) { d.Stat() },
			"count":  func(d *jute.Decoder) { d.Count(4); d.Int32() },
		} {
			d := jute.Decode(body)
			read(d)
			require.ErrorIs(t, d.Err(), jute.ErrMalformed, "%s of %x", name, body)
			require.Zero(t, d.Int32(), "a failed decoder reads zeros")
			require.Empty(t, d.Rest())
		}
	}
}

var errFirst = errors.New("first")

func TestTheFirstErrorOfADecoderStays(t *testing.T) {
	d := jute.Decode([]byte{1, 2, 3, 4, 5})
	d.Fail(errFirst)
	d.Int64()
	require.Equal(t, errFirst, d.Err())
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 'x', 0, 0, 0, 2})
	f.Fuzz(func(t *testing.T, body []byte) {
		d := jute.Decode(body)
		for d.Err() == nil {
			d.Int32()
			d.Buffer()
			for range d.Count(1) {
				d.Take(1)
			}
			d.Text()
			d.Bool()
			d.Int64()
		}
		require.Empty(t, d.Rest())
	})
}
