package zkconn

import (
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"
)

// The version of a node is a number of 32 bits, so after 4294967295 changes it is -1. In a request that means any version:
// a change that was computed from that state would be made whatever the state is by then. So a change at the version -2
// writes the node twice, in one transaction, and no client ever sees the version -1.

// NextVersion is the version of a node's data after a change at version v.
func NextVersion(v int32) int32 {
	if v == -2 {
		return 0
	}
	return v + 1
}

// leaps are the indexes of the operations that were added to a transaction.
type leaps []int

// leap adds to a transaction what leaps over the version -1.
func leap(ops []any) (sent []any, added leaps) {
	at := func(op any) bool { set, ok := op.(*zk.SetDataRequest); return ok && set.Version == -2 }
	if !slices.ContainsFunc(ops, at) {
		return ops, nil
	}
	for _, op := range ops {
		sent = append(sent, op)
		if at(op) {
			again := *op.(*zk.SetDataRequest)
			again.Version = -1
			added = append(added, len(sent))
			sent = append(sent, &again)
		}
	}
	return sent, added
}

// back turns the outcome of the operations that were sent into the outcome of the operations of the caller.
func (l leaps) back(res []zk.MultiResponse, err error) ([]zk.MultiResponse, error) {
	var refused *TxnError
	errors.As(err, &refused)
	for _, at := range slices.Backward(l) {
		if refused != nil && refused.Index >= at {
			refused.Index--
		}
		if err == nil {
			res = slices.Delete(res, at-1, at) // the Stat of the second write counts
		}
	}
	return res, err
}
