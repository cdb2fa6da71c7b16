package zksync

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAFenceAdmitsWhatIsNotOlderThanTheNewest(t *testing.T) {
	var f Fence
	require.Equal(t, Token{}, f.Newest())
	require.NoError(t, f.Admit(Token{Zxid: 5}))
	require.NoError(t, f.Admit(Token{Zxid: 5}), "an equal token is the same grant")
	require.NoError(t, f.Admit(Token{Zxid: 5, Seq: 2}), "handed over inside the process")
	require.ErrorIs(t, f.Admit(Token{Zxid: 5, Seq: 1}), ErrStale)
	require.ErrorIs(t, f.Admit(Token{Zxid: 4, Seq: 9}), ErrStale)
	require.Equal(t, Token{Zxid: 5, Seq: 2}, f.Newest())
	require.NoError(t, f.Admit(Token{Zxid: 6}))
	require.Equal(t, Token{Zxid: 6}, f.Newest())
}

func TestAFenceRefusesTokensThatBelongToNoGrant(t *testing.T) {
	var f Fence
	for _, token := range []Token{{}, {Seq: 7}, {Zxid: -1}} {
		err := f.Admit(token)
		require.ErrorIs(t, err, ErrStale, "%v", token)
		require.ErrorIs(t, err, ErrMisuse, "%v", token)
	}
	require.Equal(t, Token{}, f.Newest())
}

func TestARefusalNamesBothTokens(t *testing.T) {
	var f Fence
	require.NoError(t, f.Admit(Token{Zxid: 0x20}))
	err := f.Admit(Token{Zxid: 0x10, Seq: 1})
	require.EqualError(t, err,
		"zksync: fence: token 0000000000000010-00000001 is older than 0000000000000020-00000000: zksync: stale token")
}

func TestAFenceRemembersTheMaximumOfAllItWasShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Fence
		var newest Token
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			token := Token{Zxid: rapid.Int64Range(0, 3).Draw(t, "zxid"), Seq: rapid.Uint32Range(0, 3).Draw(t, "seq")}
			err := f.Admit(token)
			if token.Zxid > 0 && token.Compare(newest) >= 0 {
				require.NoError(t, err)
				newest = token
			} else {
				require.ErrorIs(t, err, ErrStale)
			}
			require.Equal(t, newest, f.Newest())
		}
	})
}

func TestConcurrentAdmissionsNeverGoBackwards(t *testing.T) {
	const writers, rounds = 8, 500
	var (
		f        Fence
		resource sync.Mutex // what the documentation asks for: admit and act in one step
		applied  []Token
		wg       sync.WaitGroup
	)
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				token := Token{Zxid: int64(i + 1), Seq: uint32(w)}
				resource.Lock()
				if f.Admit(token) == nil {
					applied = append(applied, token)
				}
				resource.Unlock()
				f.Newest()
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, applied)
	for i := 1; i < len(applied); i++ {
		require.GreaterOrEqual(t, applied[i].Compare(applied[i-1]), 0)
	}
	require.Equal(t, applied[len(applied)-1], f.Newest())
	require.Equal(t, Token{Zxid: rounds, Seq: writers - 1}, f.Newest(), "the greatest was shown, so it is the newest")
}
