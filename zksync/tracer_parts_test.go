package zksync_test

import (
	"context"
	"net"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
	"github.com/go-menagerie/menagerie/internal/session"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// plain is a tracer without optional parts.
type plain struct{}

func (plain) AcquireStart(ctx context.Context, _ zksync.AcquireStartData) context.Context { return ctx }
func (plain) AcquireEnd(context.Context, zksync.AcquireEndData)                           {}

// kept keeps what a tracer was called with.
type kept[D any] struct {
	plain
	mu  sync.Mutex
	all []D
}

func (k *kept[D]) add(d D) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, d)
}

// take waits until nothing happens any more.
func (k *kept[D]) take() []D {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.all
	k.all = nil
	return all
}

type openings struct{ kept[*zksync.Session] }

func (o *openings) Opened(s *zksync.Session) {
	o.add(s)
	if !time.Now().Before(s.Expires()) || s.ID() == 0 {
		panic("the session is not open yet")
	}
}

func TestASessionIsOpenedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		o := &openings{}
		heal := srv.Refuse()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := zksync.Connect(ctx, "zk:2181", zksync.WithDialer(srv.DialContext), zksync.WithTracer(o))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, o.take())
		heal()
		s := srv.Session(t, zksync.WithTracer(o))
		require.Equal(t, []*zksync.Session{s}, o.all)
		srv.Expire(s.ID())
		time.Sleep(time.Second)
		require.Len(t, o.take(), 1)
		require.Equal(t, zksync.Connected, s.State())
	})
}

func TestExpiresIsWhenASessionIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		s := srv.Session(t)
		l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		require.Equal(t, l.Expires(), s.Expires())
		require.NoError(t, l.Unlock())
		require.Greater(t, time.Until(s.Expires()), 14*time.Second, "without a lease")
		srv.Partition(s.ID())
		allow := srv.Refuse()
		end := s.Expires()
		time.Sleep(time.Until(end) - 1)
		require.Equal(t, end, s.Expires())
		require.NotEqual(t, zksync.Lost, s.State())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Zero(t, s.Expires())
		allow()
		time.Sleep(time.Minute)
		require.Equal(t, zksync.Connected, s.State())
		require.True(t, time.Now().Before(s.Expires()))
		require.NoError(t, s.Close())
		require.Zero(t, s.Expires())
	})
}

type losses struct{ kept[zksync.LossData] }

func (l *losses) Lost(_ context.Context, d zksync.LossData) { l.add(d) }

func TestALossHasItsReason(t *testing.T) {
	for reason, lose := range map[string]func(*testing.T, *zktest.Server, *zksync.Session, *zksync.Lease){
		zksync.ReasonSession: func(_ *testing.T, srv *zktest.Server, s *zksync.Session, _ *zksync.Lease) { srv.Expire(s.ID()) },
		zksync.ReasonRemoved: func(_ *testing.T, srv *zktest.Server, _ *zksync.Session, l *zksync.Lease) { srv.Delete(l.Node()) },
		zksync.ReasonRevoked: func(t *testing.T, srv *zktest.Server, _ *zksync.Session, l *zksync.Lease) {
			removeEntry(t, srv, l.Node())
		},
		zksync.ReasonMaxHold: func(*testing.T, *zktest.Server, *zksync.Session, *zksync.Lease) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Run(t)
			told := &losses{}
			s := srv.Session(t, zksync.WithTracer(told))
			limit := time.Hour
			if reason == zksync.ReasonMaxHold {
				limit = time.Second
			}
			l, err := zksync.NewMutex(s, "/locks/a", zksync.WithName("orders"), zksync.WithMaxHold(limit)).LockContext(t.Context())
			require.NoError(t, err)
			time.Sleep(time.Second)
			lose(t, srv, s, l)
			time.Sleep(time.Second)
			got := told.take()
			require.Len(t, got, 1, reason)
			require.Equal(t, reason, got[0].Reason)
			require.ErrorIs(t, got[0].Err, zksync.ErrLost)
			got[0].Err, got[0].Reason = nil, ""
			require.Equal(t, zksync.LossData{
				Path: "/locks/a", Name: "orders", Kind: zksync.KindLock, Node: l.Node(), Token: l.Token(), Held: time.Second, Epoch: 1,
			}, got[0])
		})
	}
}

// removeEntry does what menagerie release does.
func removeEntry(t *testing.T, srv *zktest.Server, entry string) {
	en, ok := queue.ParseEntry(path.Base(entry))
	require.True(t, ok)
	at := session.NewAccess[session.Option]("zksync", (*session.Session)(srv.Session(t)), path.Dir(entry), nil)
	require.NoError(t, at.Run(context.Background(), "remove", func(ctx context.Context, e *zkconn.Epoch) error {
		why := at.Content(node.Content{Reason: "it hangs"})
		_, err := at.Queue("", en.Kind).Remove(ctx, e, en, &why)
		return err
	}))
}

type requests struct{ kept[zksync.RequestData] }

func (r *requests) Request(d zksync.RequestData) { r.add(d) }

// counted counts the bytes of a connection.
type counted struct {
	net.Conn
	sent, received *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

var opsByName = map[string]zktest.Op{
	"create": zktest.Create, "delete": zktest.Delete, "exists": zktest.Exists, "get_data": zktest.GetData, "set_data": zktest.SetData,
	"get_acl": zktest.GetACL, "set_acl": zktest.SetACL, "get_children": zktest.GetChildren, "sync": zktest.Sync, "multi": zktest.Multi,
	"auth": zktest.SetAuth, "ping": zktest.Ping, "close_session": zktest.CloseSession,
}

// Requests of the library are those that pass through the same connection.
func TestEveryRequestIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		r := &requests{}
		var sent, received atomic.Int64
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := srv.DialContext(ctx, network, address)
			return counted{c, &sent, &received}, err
		}
		s := srv.Session(t, zksync.WithTracer(r), zksync.WithDialer(dial), zksync.WithAuth("digest", []byte("a:b")))
		id := s.ID()
		greeted, answered := sent.Load(), received.Load()
		got := r.take()
		require.Equal(t, []zksync.RequestData{{Op: "auth", Sent: 33, Received: 20}}, got)
		greeted, answered = greeted-33, answered-20

		srv.Delay(id, 30*time.Millisecond, 20*time.Millisecond)
		useEverything(t, s)
		time.Sleep(10 * time.Second) // pings
		require.NoError(t, s.Close())

		got = append(got, r.take()...)
		count, out, in := map[string]int{}, 2*greeted, 2*answered // Conn has made another connection
		for i, d := range got {
			count[d.Op]++
			out, in = out+int64(d.Sent), in+int64(d.Received)
			if i > 0 {
				require.Equal(t, 50*time.Millisecond, d.Duration, d)
			}
			require.Equal(t, d.Err == nil, d.Code == 0, d)
		}
		for name, op := range opsByName {
			require.Equal(t, srv.RequestsOf(id, op), count[name], name)
			require.Positive(t, count[name], name)
			delete(count, name)
		}
		require.Empty(t, count)
		require.Equal(t, sent.Load(), out)
		require.Equal(t, received.Load(), in)
	})
}

// useEverything sends each kind of request. Some fail.
func useEverything(t *testing.T, s *zksync.Session) {
	l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
	require.NoError(t, err)
	_, err = l.Guard(t.Context(), &zk.CreateRequest{Path: "/locks/b", Acl: zk.WorldACL(zk.PermAll)})
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
	c := s.Conn()
	_, err = c.Create("/x", []byte("data"), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	_, _, err = c.Get("/nowhere")
	require.ErrorIs(t, err, zk.ErrNoNode)
	_, stat, err := c.Exists("/x")
	require.NoError(t, err)
	_, err = c.Set("/x", nil, stat.Version)
	require.NoError(t, err)
	_, err = c.Set("/x", nil, stat.Version)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	acl, _, err := c.GetACL("/x")
	require.NoError(t, err)
	_, err = c.SetACL("/x", acl, -1)
	require.NoError(t, err)
	_, _, err = c.Children("/x")
	require.NoError(t, err)
	_, err = c.Sync("/x")
	require.NoError(t, err)
	require.NoError(t, c.Delete("/x", -1))
	require.Error(t, c.Delete("/x", -1))
}

func TestARequestHasTheCodeOfItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		r := &requests{}
		s := srv.Session(t, zksync.WithTracer(r))
		l, err := zksync.NewMutex(s, "/locks/a").LockContext(t.Context())
		require.NoError(t, err)
		defer l.Unlock()
		r.take()
		last := func() zksync.RequestData {
			all := r.take()
			return all[len(all)-1]
		}
		_, err = l.Guard(t.Context(), &zk.DeleteRequest{Path: "/nowhere", Version: -1})
		require.ErrorIs(t, err, zk.ErrNoNode)
		d := last()
		require.ErrorIs(t, d.Err, zk.ErrNoNode)
		require.Equal(t, zksync.RequestData{Op: "multi", Code: int(zktest.CodeNoNode), Err: d.Err, Sent: d.Sent, Received: d.Received}, d)

		clear := srv.SetError(zktest.CodeThrottled, zktest.Sync)
		_, err = s.Conn().Sync("/")
		require.Error(t, err)
		clear()
		d = last()
		require.Equal(t, "sync", d.Op)
		require.Equal(t, int(zktest.CodeThrottled), d.Code)
		require.True(t, zksync.Ambiguous(d.Err))
	})
}

func TestARequestWithoutAnAnswerIsTraced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Run(t)
		r := &requests{}
		s := srv.Session(t, zksync.WithTracer(r))
		c := s.Conn()
		r.take()
		id := s.ID()
		srv.Delay(id, time.Second, 0)
		var work sync.WaitGroup
		work.Go(func() { _, _, _ = c.Get("/of-the-library") })
		work.Go(func() { _, err := zksync.Contenders(t.Context(), s, "/of-ours"); require.NoError(t, err) })
		time.Sleep(time.Second / 2)
		srv.Disconnect(id)
		lost := r.take()
		require.Len(t, lost, 2)
		for _, d := range lost {
			require.Equal(t, zksync.RequestData{Op: d.Op, Duration: time.Second / 2, Err: d.Err, Sent: d.Sent}, d)
			require.True(t, zksync.Ambiguous(d.Err), d)
			require.Positive(t, d.Sent)
		}
		work.Wait()
	})
}
