package faults_test

import (
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

func tok(n int64) zksync.Token { return zksync.Token{Zxid: n} }

// span is an operation in a hand-made history.
func span(call, ret int64, do action, token int64) porcupine.Operation {
	return porcupine.Operation{Call: call, Return: ret, Input: step{do: do, token: tok(token), shares: 1, exclusive: true}}
}

func shared(call, ret int64, do action, token int64, n int) porcupine.Operation {
	return porcupine.Operation{Call: call, Return: ret, Input: step{do: do, token: tok(token), shares: n}}
}

func TestTheModelAcceptsGoodHistoriesAndRefusesBadOnes(t *testing.T) {
	for _, c := range []struct {
		name     string
		capacity int
		good     bool
		ops      []porcupine.Operation
	}{
		{"one after the other", 1, true, []porcupine.Operation{
			span(1, 2, acquires, 1), span(3, 4, releases, 1), span(5, 6, acquires, 2), span(7, 8, releases, 2)}},
		{"the second waits for the first", 1, true, []porcupine.Operation{
			span(1, 2, acquires, 1), span(2, 6, acquires, 2), span(4, 8, releases, 1), span(9, 10, releases, 2)}},
		{"two hold", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 1), span(3, 4, acquires, 2), span(5, 6, releases, 1), span(7, 8, releases, 2)}},
		{"the token goes down", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 2), span(3, 4, releases, 2), span(5, 6, acquires, 1), span(7, 8, releases, 1)}},
		{"the token stays the same", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 2), span(3, 4, releases, 2), span(5, 6, acquires, 2), span(7, 8, releases, 2)}},
		{"taken over after a loss that is told later", 1, true, []porcupine.Operation{
			span(1, 2, acquires, 1), span(2, 9, loses, 1), span(3, 4, acquires, 2), span(5, 6, releases, 2), span(10, 11, findsLost, 1)}},
		{"taken over without a loss", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 1), span(3, 4, acquires, 2), span(5, 6, releases, 2), span(10, 11, releases, 1)}},
		{"told of a loss that never was", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 1), span(3, 4, findsLost, 1)}},
		{"released after the loss was told", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 1), span(2, 3, loses, 1), span(4, 5, releases, 1)}},
		{"a release of unknown outcome explains the next", 1, true, []porcupine.Operation{
			span(1, 2, acquires, 1), span(3, never, mayRelease, 1), span(8, 9, acquires, 2), span(10, 11, releases, 2)}},
		{"not one that came later", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 1), span(3, 4, acquires, 2), span(5, never, mayRelease, 1)}},
		{"released twice", 1, false, []porcupine.Operation{
			span(1, 2, acquires, 1), span(3, 4, releases, 1), span(5, 6, releases, 1)}},
		{"readers together, tokens in any order", 9, true, []porcupine.Operation{
			shared(1, 2, acquires, 2, 1), shared(3, 4, acquires, 1, 1), shared(5, 6, releases, 1, 1), shared(7, 8, releases, 2, 1)}},
		{"a reader beside a writer", 9, false, []porcupine.Operation{
			span(1, 2, acquires, 1), shared(3, 4, acquires, 2, 1), span(5, 6, releases, 1)}},
		{"a writer with a token of before a reader's", 9, false, []porcupine.Operation{
			shared(1, 2, acquires, 2, 1), shared(3, 4, releases, 2, 1), span(5, 6, acquires, 1)}},
		{"permits up to the capacity", 3, true, []porcupine.Operation{
			shared(1, 2, acquires, 1, 2), shared(3, 4, acquires, 2, 1), shared(5, 6, releases, 1, 2), shared(7, 8, acquires, 3, 2)}},
		{"more permits than there are", 3, false, []porcupine.Operation{
			shared(1, 2, acquires, 1, 2), shared(3, 4, acquires, 2, 2), shared(5, 6, releases, 1, 2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.good, porcupine.CheckOperations(sharesModel(c.capacity), c.ops))
		})
	}
}
