package tree

import (
	"time"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// The owner of a node with a time to live has the first byte set, and the milliseconds in the last five.
const (
	ttlMark int64 = -1 << 56
	maxTTL  int64 = 1<<40 - 1
)

func isTTL(owner int64) bool { return owner&ttlMark == ttlMark }

// ttlOf returns the time to live that an owner stands for; 0 for any other owner.
func ttlOf(owner int64) time.Duration {
	if !isTTL(owner) {
		return 0
	}
	return time.Duration(owner&maxTTL) * time.Millisecond
}

// checkTTL checks the time to live of a create. A request that has no field for it has none, which is
// wrong with the flags of such a node; the other way round it is superfluous.
func (p *Proposal) checkTTL(c *wire.Call) wire.Code {
	if c.Flags != wire.FlagTTL && c.Flags != wire.FlagTTLSequential {
		if c.Op == wire.OpCreateTTL {
			return wire.CodeBadArguments
		}
		return wire.CodeOK
	}
	switch {
	case !p.Extended:
		return wire.CodeUnimplemented
	case c.TTL <= 0 || c.TTL > maxTTL:
		return wire.CodeBadArguments
	}
	return wire.CodeOK
}
