package demo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/zksync"
)

func genRecord(t *rapid.T) record {
	return record{
		counter: rapid.IntRange(0, MaxWorkers*MaxRounds).Draw(t, "counter"),
		token: zksync.Token{
			Zxid: rapid.Int64Min(0).Draw(t, "zxid"),
			Seq:  rapid.Uint32().Draw(t, "seq"),
		},
		rounds: rapid.SliceOfN(rapid.IntRange(0, MaxRounds), 1, MaxWorkers).Draw(t, "rounds"),
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRecord(t)
		got, err := decodeRecord(r.encode())
		require.NoError(t, err)
		require.Equal(t, r, got)
	})
}

func TestTheWidthOfARecordDependsOnTheNumberOfWorkersOnlyAndIsLessThanAPage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genRecord(t)
		b := record{rounds: make([]int, len(a.rounds))}
		require.Len(t, a.encode(), len(b.encode()))
		require.Less(t, len(a.encode()), 4096)
	})
}

func TestADamagedRecordIsNotBelieved(t *testing.T) {
	whole := record{counter: 7, token: zksync.Token{Zxid: 9, Seq: 1}, rounds: []int{3, 4}}.encode()
	_, err := decodeRecord(whole)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(whole)-1).Draw(t, "cut")
		_, err := decodeRecord(whole[:cut])
		require.ErrorIs(t, err, errTorn)
	})
	for _, text := range []string{"", "\n", "counter x token y\n0000001 \n", "counter 000000000007 token 0\n"} {
		_, err := decodeRecord([]byte(text))
		require.ErrorIs(t, err, errTorn, text)
	}
}

func TestACounterFileKeepsWhatWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counter")
	require.NoError(t, createCounter(path, 3))
	f, err := openCounter(path, 3)
	require.NoError(t, err)
	defer f.close()
	r, err := f.read()
	require.NoError(t, err)
	require.Equal(t, record{rounds: []int{0, 0, 0}}, r)
	r.counter, r.rounds[1], r.token = 1, 1, zksync.Token{Zxid: 5}
	require.NoError(t, f.write(r))
	got, err := f.read()
	require.NoError(t, err)
	require.Equal(t, r, got)
	require.NoError(t, os.Truncate(path, 10))
	_, err = f.read()
	require.ErrorIs(t, err, errTorn)
}
