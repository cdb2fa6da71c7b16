package writers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// named is the data of a writer's node: the name of its change, and the timeout of its session, which others learn only here.
func named(e *zkconn.Epoch, change string) string {
	return change + "/" + strconv.FormatInt(e.Timeout().Milliseconds(), 10)
}

// Lifetime is the timeout of another session: after its death its nodes stay for so long. It is 0 if no writer in dir that may be read
// says it. It reads all writers there.
func Lifetime(ctx context.Context, e *zkconn.Epoch, dir string, session int64) (lifetime time.Duration, err error) {
	names, _, err := e.Children(ctx, dir)
	for i, name := range names {
		names[i] = dir + "/" + name
	}
	if err == nil {
		err = e.GetEach(ctx, names, func(_ int, c zkconn.Content) error {
			_, told, _ := strings.Cut(string(c.Data), "/")
			if ms, err := strconv.ParseInt(told, 10, 32); err == nil && c.Stat.EphemeralOwner == session {
				lifetime = time.Duration(ms) * time.Millisecond
			}
			return nil
		})
	}
	if errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		err = nil
	}
	return lifetime, err
}
