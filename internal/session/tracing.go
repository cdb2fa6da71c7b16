package session

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// Trace has the functions of a tracer, as package zksync's Tracer and its optional
// parts have them. A function is nil if the tracer does not want that call.
type Trace struct {
	Start   func(ctx context.Context, path string, kind queue.Kind) context.Context
	End     func(ctx context.Context, path string, kind queue.Kind, err error, g Granted, waited time.Duration)
	Release func(ctx context.Context, path string, kind queue.Kind, g Granted, held time.Duration)
	Lost    func(ctx context.Context, path string, kind queue.Kind, g Granted, held time.Duration, err error)
	State   func(from, to State, session int64, epoch uint64)
}

// Granted identifies a grant: by its token, and by the ZooKeeper session
// it belongs to, as a number that counts those of this Session from 1.
type Granted struct {
	Token node.Token
	Epoch uint64
}
