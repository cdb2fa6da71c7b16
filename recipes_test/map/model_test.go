package zkmap_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// The specification of one key of a map, as a sequential program. The state is a value, 0 if the key is not there.

type action int

const (
	loads1 action = iota
	stores
	loadsOrStores
	loadsAndDeletes
	deletes
	swaps
	comparesAndSwaps
	comparesAndDeletes
	adds // an Update that adds to the value, and removes the key when the sum is 0
)

var actionNames = [...]string{"load", "store", "load-or-store", "load-and-delete", "delete", "swap", "compare-and-swap", "compare-and-delete", "add"}

// call is the input of an operation, and what it returned: 0 for a value that is not there, 1 for true. If its outcome
// is not known, it may have happened at any time later, or never.
type call struct {
	do       action
	key      string
	old, new int
	got      int
	unknown  bool
}

// never is the return time of an operation that nobody knows the end of.
const never = math.MaxInt64

// effect is what a call returns in a state, and the state after it.
func (c call) effect(now int) (got, then int) {
	equal := 0
	if now != 0 && now == c.old {
		equal = 1
	}
	switch c.do {
	case loads1:
		return now, now
	case stores:
		return 0, c.new
	case loadsOrStores:
		if now != 0 {
			return now, now
		}
		return c.new, c.new
	case loadsAndDeletes:
		return now, 0
	case deletes:
		return 0, 0
	case swaps:
		return now, c.new
	case comparesAndSwaps:
		if equal == 1 {
			now = c.new
		}
		return equal, now
	case comparesAndDeletes:
		if equal == 1 {
			now = 0
		}
		return equal, now
	default:
		return now + c.new, now + c.new
	}
}

// keyModel is per key: the keys of a map do not depend on each other.
var keyModel = (&porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(call).key
			byKey[key] = append(byKey[key], op)
		}
		var all [][]porcupine.Operation
		for _, ops := range byKey {
			all = append(all, ops)
		}
		return all
	},
	Init: func() []any { return []any{0} },
	Step: func(state, input, _ any) []any {
		c := input.(call)
		got, then := c.effect(state.(int))
		switch {
		case c.unknown && then == state:
			return []any{state}
		case c.unknown:
			return []any{state, then}
		case got == c.got:
			return []any{then}
		}
		return nil
	},
	DescribeOperation: func(input, _ any) string {
		c := input.(call)
		return fmt.Sprintf("%s %s %d %d = %d, unknown: %t", actionNames[c.do], c.key, c.old, c.new, c.got, c.unknown)
	},
}).ToModel()

func TestTheModelOfAKeyAcceptsGoodHistoriesAndRefusesBadOnes(t *testing.T) {
	op := func(from, to int64, c call) porcupine.Operation {
		return porcupine.Operation{Call: from, Return: to, Input: c}
	}
	for _, c := range []struct {
		name string
		good bool
		ops  []porcupine.Operation
	}{
		{"one after the other", true, []porcupine.Operation{
			op(1, 2, call{do: stores, new: 1}), op(3, 4, call{do: swaps, new: 2, got: 1}), op(5, 6, call{do: loadsAndDeletes, got: 2}),
			op(7, 8, call{do: loads1})}},
		{"both store first", false, []porcupine.Operation{
			op(1, 4, call{do: loadsOrStores, new: 1, got: 1}), op(2, 3, call{do: loadsOrStores, new: 2, got: 2})}},
		{"a swap is forgotten", false, []porcupine.Operation{
			op(1, 2, call{do: stores, new: 1}), op(3, 6, call{do: swaps, new: 2, got: 1}), op(4, 5, call{do: swaps, new: 3, got: 1})}},
		{"an addition is lost", false, []porcupine.Operation{
			op(1, 4, call{do: adds, new: 1, got: 1}), op(2, 3, call{do: adds, new: 1, got: 1})}},
		{"an old value is loaded", false, []porcupine.Operation{
			op(1, 2, call{do: stores, new: 1}), op(3, 4, call{do: stores, new: 2}), op(5, 6, call{do: loads1, got: 1})}},
		{"a value of another key", true, []porcupine.Operation{
			op(1, 2, call{do: stores, new: 1, key: "other"}), op(3, 4, call{do: loads1})}},
		{"what is not known happens late", true, []porcupine.Operation{
			op(1, never, call{do: stores, new: 1, unknown: true}), op(2, 3, call{do: loads1}), op(4, 5, call{do: loads1, got: 1})}},
		{"but once", false, []porcupine.Operation{
			op(1, never, call{do: stores, new: 1, unknown: true}), op(2, 3, call{do: loadsAndDeletes, got: 1}), op(4, 5, call{do: loads1, got: 1})}},
		{"a successor is overwritten", false, []porcupine.Operation{
			op(1, 2, call{do: stores, new: 1}), op(3, 9, call{do: comparesAndSwaps, old: 1, new: 3, got: 1}), op(4, 5, call{do: deletes}),
			op(6, 7, call{do: stores, new: 2}), op(7, 8, call{do: loads1, got: 2}), op(10, 11, call{do: loads1, got: 3})}},
	} {
		for i := range c.ops {
			in := c.ops[i].Input.(call)
			if in.key == "" {
				in.key = "k"
			}
			c.ops[i].Input = in
		}
		slices.SortFunc(c.ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		require.Equal(t, c.good, porcupine.CheckOperations(keyModel, c.ops), c.name)
	}
}
