package conformance

import (
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zktest/internal/engine"
)

func TestWatchesSeeWhatBothServersRemoveOnTheirOwn(t *testing.T) {
	t.Parallel()
	real := &realServer{t: t, e: ensemble.ForTestConfig(t, ensemble.Config{
		Servers: 1, Tick: tick, MaxSessionTimeout: maxTimeout,
		Properties: map[string]string{"znode.container.checkIntervalMs": "200", "zookeeper.extendedTypesEnabled": "true"},
	})}
	zk := engine.New(engine.Config{
		Tick: tick, MaxTimeout: maxTimeout, ContainerInterval: 200 * time.Millisecond, ExtendedTypes: true,
	})
	t.Cleanup(zk.Close)
	both(t, real, &ownServer{zk: zk}, "/reap", false, func(w *world) {
		a, b, c := w.join("A"), w.join("B"), w.join("C")
		// No fence in between: what the server does on its own may come before or after the answer to it.
		hear := func(x *client, events int) {
			for range events {
				x.event()
			}
		}
		a.do(addWatch("~", modeRecursive))
		b.do(addWatch("~", modePersistent))
		c.all(container("~/c", ""), create("~/c/k", "", persistent), exists("~/c", true), remove("~/c/k", -1))
		hear(c, 1) // it is gone, and nobody has asked for that
		hear(a, 4)
		hear(b, 2)
		c.do(createTTL("~/t", "", ttlFlag, 1))
		hear(a, 2)
		hear(b, 2)
		c.do(list("~", false))
	})
}
