package zkwatch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-menagerie/menagerie/internal/codec"
	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/follow"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/record"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
)

// Kept is an ephemeral node of this process that is made again in every session, and when another program has
// removed or changed it: Curator's PersistentNode. While another session has an ephemeral node at the path,
// it waits. A node there that is not ephemeral ends it with zksync.ErrMisuse.
type Kept struct {
	at   *session.Access
	node string // the path on the servers

	leaving context.Context // ends when Close begins
	leave   context.CancelFunc
	done    chan struct{}

	// Of the goroutine of run.
	link   int64     // the connection whose server has caught up: see caughtUp
	stays  error     // why the node could not be removed
	latest int       // wanted, when a request last took the data
	late   time.Time // until when a request of this session whose outcome is unknown may yet make the node

	mu     sync.Mutex
	data   []byte
	wanted int              // counts the calls of SetData
	kept   int              // wanted, when the node last had the data
	heard  *record.Listener // of the node; nil while run does not listen
	news   chan struct{}    // closed when kept has changed
	taken  *takenError      // the node that is in the way; nil if there is none
	err    error            // why it has ended
}

// Keep makes the node, with its parents, in the background, and keeps it until Close. Its options are WithACL
// and WithName. A wrong argument ends it: see [Kept.Err].
func Keep(s *zksync.Session, path string, data []byte, opts ...zksync.Option) *Kept {
	k := &Kept{
		at:   session.NewAccess("zkwatch", (*session.Session)(s), path, opts).Without(session.OfHolds...),
		done: make(chan struct{}), data: bytes.Clone(data), wanted: 1, news: make(chan struct{}),
	}
	k.node = k.at.Full(path)
	k.leaving, k.leave = context.WithCancel(errs.WithTrail(context.Background()))
	if err := k.fits(data); err != nil {
		k.at.Refuse(err)
	}
	if !k.at.Spawn(k.run) {
		k.err = zksync.ErrClosed
		close(k.done)
	}
	return k
}

// made is k, which Keep has made. Of a zero or nil value it panics.
func (k *Kept) made() *Kept {
	if k == nil || k.at == nil {
		panic(errs.Unmade("zkwatch", "a Kept", "Keep"))
	}
	return k
}

// fits refuses data for which a request has no room.
func (k *Kept) fits(data []byte) error {
	_, err := codec.Encode(codec.Raw, data, len(k.at.Path)+record.ACLSize(k.at.ACL())+100)
	return err
}

// run is stay, and then the end.
func (k *Kept) run() {
	err := k.stay()
	switch {
	case k.stays != nil:
		err = k.stays
	case err == nil, k.leaving.Err() != nil && !k.at.Closing():
		err = zksync.ErrReleased
	}
	k.mu.Lock()
	k.err = err
	k.mu.Unlock()
	close(k.done)
}

// stay keeps the node through all sessions. Two in one session would both take the node for their own, and overwrite each other's data
// without an end.
func (k *Kept) stay() error {
	if err := k.at.Misuse(); err != nil {
		return err
	}
	err := k.at.Occupy(k.node, &session.Keeper{Leaving: k.leaving, Done: k.done})
	switch {
	case errors.Is(err, session.ErrOccupied):
		return errs.Misuse("%w: close the other Kept first", err)
	case err != nil:
		return err
	}
	defer k.at.Vacate(k.node)
	return k.at.Run(k.leaving, "", k.in, session.Lasting)
}

// takenError means that the node at the path is of another session.
type takenError struct{ session int64 }

func (e *takenError) Error() string { return fmt.Sprintf("session 0x%x has the node", e.session) }

// in keeps the node through one session. It returns nil after Close. Requests that change something do not end with Close,
// because their outcome must be known.
func (k *Kept) in(ctx context.Context, e *zkconn.Epoch) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.leaving, cancel)()
	k.link, k.late = 0, time.Time{} // each session numbers its connections
	var pace node.Pace
	for made := false; ; {
		switch {
		case k.leaving.Err() != nil:
			err := k.remove(ctx, e)
			if time.Now().Before(k.late) {
				k.at.Spawn(func() { k.clear(e) })
			}
			return err
		case k.at.Closing():
			return zksync.ErrClosed // it may be gone because of that
		}
		if k.isBehind() {
			pace = node.Pace{Free: 2} // there is a reason to do something
		}
		err := k.ensure(ctx, e, made)
		taken := k.inTheWay(err)
		switch made = err == nil; {
		case err == nil:
			err = k.watch(waiting, e)
		case taken:
			err = record.UntilGone(waiting, e, k.node, 0, nil)
		}
		passes := zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent) // and there is no caller to ask again
		if err != nil && !passes && (ctx.Err() != nil || k.leaving.Err() == nil) {
			return err
		}
		if err := pace.Rest(waiting, e); err != nil && k.leaving.Err() == nil {
			return err
		}
	}
}

func (k *Kept) dir() string { return k.node[:max(strings.LastIndexByte(k.node, '/'), 1)] }

// isBehind reports whether the node has yet to get the wanted data.
func (k *Kept) isBehind() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept != k.wanted
}

// ensure makes sure that the node is there, with the data. made means that it was there before.
func (k *Kept) ensure(ctx context.Context, e *zkconn.Epoch, made bool) (err error) {
	err = zk.ErrNoNode
	if made {
		err = k.write(ctx, e)
	}
	for pace := (node.Pace{Free: 2}); errors.Is(err, zk.ErrNoNode); {
		r := node.Insist(ctx, e)
		for r.Next() {
			k.link = e.Connection() // a server that has answered, even with a refusal, has caught up; without an answer this session is over for us
			_, r.Err = e.StartMulti(&zk.CreateRequest{Path: k.node, Data: k.newest(), Acl: k.at.ACL(), Flags: zk.FlagEphemeral}).Wait(ctx, e)
			if zkconn.Unknown(r.Err) { // a copy may lie in the queue of a server, and be applied if the session comes back there
				k.late = time.Now().Add(2 * e.Timeout())
			}
		}
		err = r.Err
		switch {
		case errors.Is(err, zk.ErrNoNode): // its parent
			if err := pace.Rest(ctx, e); err != nil { // not after it is made: it is empty then, and may be removed
				return err
			}
			if err := node.MakeDir(ctx, e, k.dir(), k.at.ACL()); err != nil {
				return err
			}
		case errors.Is(err, zk.ErrNodeExists):
			err = k.write(ctx, e)
		}
	}
	if err == nil {
		k.has(k.latest)
	}
	return err
}

// newest returns the data that a request is to write. Each attempt calls it: to write old data would cost another read and write.
func (k *Kept) newest() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = k.wanted
	return k.data
}

// write makes sure that the node has the data; the error is zk.ErrNoNode if it is gone. It names the version, so that a late copy of the
// request does not change anything newer.
func (k *Kept) write(ctx context.Context, e *zkconn.Epoch) error {
	return record.Insist(ctx, e, func() error {
		link, err := k.caughtUp(ctx, e)
		if err != nil {
			return err
		}
		data := k.newest() // before the read, which may show that the node has them
		now, st, err := e.Get(ctx, k.node)
		switch {
		case err != nil:
			return err
		case st.EphemeralOwner == 0:
			return errs.Misuse("the node that is there is not ephemeral, so it stays: remove it, or keep another path")
		case st.EphemeralOwner != e.ID():
			return &takenError{st.EphemeralOwner}
		case bytes.Equal(now, data):
			return nil
		}
		return on(ctx, e, link, &zk.SetDataRequest{Path: k.node, Data: k.newest(), Version: st.Version})
	})
}

// caughtUp makes sure that the server of this connection knows the owner of the node: a server that lags may show our node where
// another process has made its own. It returns the number of the connection.
func (k *Kept) caughtUp(ctx context.Context, e *zkconn.Epoch) (link int64, err error) {
	if link = e.Connection(); link != k.link {
		err = record.Synced(ctx, e, k.dir())
	}
	if err == nil {
		k.link = link
	}
	return link, err
}

// on changes our node, which was seen on this connection, and sends nothing on another one: there it may be another process's node, at
// the same version. If the node has changed, the error is node.ErrAgain.
func on(ctx context.Context, e *zkconn.Epoch, link int64, change any) error {
	_, err := e.StartMultiIf(func() bool { return e.Connection() == link }, change).Wait(ctx, e)
	if errors.Is(err, zk.ErrBadVersion) {
		err = node.ErrAgain
	}
	return err
}

// inTheWay reports whether a node of another session is in the way, and notes that for callers that wait.
func (k *Kept) inTheWay(err error) bool {
	var taken *takenError
	there := errors.As(err, &taken)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taken = taken
	return there
}

// has notes that the node has had the data of this call of SetData.
func (k *Kept) has(wanted int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = wanted
	close(k.news)
	k.news = make(chan struct{})
}

// watch returns when there may be something to do: the node has changed or is gone, or other data are wanted.
func (k *Kept) watch(ctx context.Context, e *zkconn.Epoch) error {
	if k.isBehind() { // the write would end the watch
		return nil
	}
	l := record.Hear(e, k.node)
	defer l.Stop()
	k.mu.Lock()
	k.heard = l
	behind := k.kept != k.wanted
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.heard = nil
	}()
	for !behind {
		path, _, err := l.Next(ctx, e.Timeout())
		if path != "" || err != nil {
			return err
		}
		// Some servers do not report a deletion to a session that may not read the node.
		if _, there, err := e.Exists(ctx, k.node); err != nil || !there {
			if zkconn.Unknown(err) || errors.Is(err, zkconn.ErrNotSent) {
				continue
			}
			return err
		}
	}
	return nil
}

// remove deletes the node, if it is ours. Otherwise it goes with its session.
func (k *Kept) remove(ctx context.Context, e *zkconn.Epoch) error {
	err := record.Insist(ctx, e, func() error {
		link, err := k.caughtUp(ctx, e)
		if err != nil {
			return err
		}
		st, there, err := e.Exists(ctx, k.node)
		if err != nil || !there || st.EphemeralOwner != e.ID() {
			return err
		}
		if err = on(ctx, e, link, &zk.DeleteRequest{Path: k.node, Version: st.Version}); errors.Is(err, zk.ErrNoNode) {
			err = nil // another program was faster
		}
		return err
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, zkconn.ErrOver) && !errors.Is(err, zk.ErrSessionExpired) {
		k.stays = err
	}
	return err
}

// clear removes a node that a late request makes after the end, unless another Kept of this session has taken it.
func (k *Kept) clear(e *zkconn.Epoch) {
	<-k.done
	ctx, cancel := context.WithDeadline(context.Background(), k.late)
	defer cancel()
	defer e.OnOver(func(error) { cancel() }).Stop()
	for now, err := range follow.Data(ctx, k.at, k.node) {
		if err != nil || now.Stat == nil || now.Stat.EphemeralOwner != e.ID() {
			continue
		}
		done := make(chan struct{})
		if k.at.Occupy(k.node, &session.Keeper{Leaving: k.leaving, Done: done}) == nil {
			_ = k.remove(ctx, e)
			k.at.Vacate(k.node)
		}
		close(done)
	}
}

// SetData replaces the data. It blocks until the node is there with these data or newer ones. If ctx ends
// first, they will be written all the same. If the Kept has ended, the error is [Kept.Err]. Data of more than
// 1 MB are zksync.ErrMisuse.
func (k *Kept) SetData(ctx context.Context, data []byte) error {
	if err := k.made().fits(data); err != nil {
		return k.at.Named("keep", err)
	}
	k.mu.Lock()
	k.data = bytes.Clone(data)
	k.wanted++
	wanted := k.wanted
	if k.heard != nil {
		k.heard.Tell(k.node, zkconn.Changed)
	}
	for k.kept < wanted && k.err == nil {
		news := k.news
		k.mu.Unlock()
		select {
		case <-news:
		case <-k.done:
		case <-ctx.Done():
			return k.at.Named("keep", k.gaveUp(ctx))
		}
		k.mu.Lock()
	}
	defer k.mu.Unlock()
	if k.kept >= wanted {
		return nil
	}
	return k.at.Named("keep", k.err)
}

// gaveUp is the error of a caller whose context has ended.
func (k *Kept) gaveUp(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.taken != nil {
		return fmt.Errorf("%w: %w", errs.OfContext(ctx), k.taken)
	}
	return errs.After(errs.OfContext(ctx), k.at.LastFailure(k.leaving))
}

// Done is closed when the node is not kept any more; [Kept.Err] says why.
func (k *Kept) Done() <-chan struct{} { return k.made().done }

// Err is nil until Done is closed, then zksync.ErrReleased after Close, zksync.ErrClosed after Close of the
// session, or the refusal of the servers.
func (k *Kept) Err() error {
	k.made().mu.Lock()
	defer k.mu.Unlock()
	return k.at.Named("keep", k.err)
}

// Close removes the node, within a second, or later without a connection. If the servers refuse, it returns
// the error, and the node stays until the session ends.
func (k *Kept) Close() error {
	k.made().leave()
	select {
	case <-k.done:
	case <-time.After(time.Second):
		return nil
	}
	if err := k.Err(); !errors.Is(err, zksync.ErrReleased) && !errors.Is(err, zksync.ErrClosed) {
		return err
	}
	return nil
}
