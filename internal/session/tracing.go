package session

import (
	"context"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
)

// Trace is what a tracer is told, as package zksync's Tracer and its optional parts are: each function is
// nil if nobody wants to be told.
type Trace struct {
	Start   func(ctx context.Context, path string, kind queue.Kind) context.Context
	End     func(ctx context.Context, path string, kind queue.Kind, err error, g Granted, waited time.Duration)
	Release func(ctx context.Context, path string, kind queue.Kind, g Granted, held time.Duration)
	Lost    func(ctx context.Context, path string, kind queue.Kind, g Granted, held time.Duration, err error)
	State   func(from, to State, session int64, epoch uint64)
}

// Granted is what identifies a grant: its token, and which of the Session's ZooKeeper sessions it
// belongs to, counted from 1.
type Granted struct {
	Token node.Token
	Epoch uint64
}
