package writers

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Wear puts an idle writer back whose last change gave its node this version.
func (ws *Writers) Wear(e *zkconn.Epoch, dir string, version int32) {
	w := ws.take(e, dir, nil)
	w.version = version
	ws.put(w)
}

// AbandonUnsent abandons a new writer whose first request was applied without an answer, and whose second one was not sent.
func AbandonUnsent(ctx context.Context, e *zkconn.Epoch, dir string, acl []zk.ACL) {
	w := new(Writers).take(e, dir, acl)
	w.call = e.StartMulti(w.step(w.change))
	_, _ = w.call.Wait(ctx, e)
	w.unknown = true
	w.call = e.StartMultiIf(func() bool { return false }, w.step(w.change))
	_, _ = w.call.Wait(ctx, e)
	w.abandon()
}
