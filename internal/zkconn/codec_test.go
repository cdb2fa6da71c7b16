package zkconn

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/jute"
)

// Our own frames must be those of the client library, byte for byte.
func TestOurRequestsAreEncodedAsTheClientEncodesThem(t *testing.T) {
	acl := []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "u:h"}, {Perms: zk.PermRead, Scheme: "world", ID: "anyone"}}
	ops := []any{
		&zk.CheckVersionRequest{Path: "/c", Version: 3},
		&zk.CreateRequest{Path: "/a/x-", Data: []byte("d"), Acl: acl, Flags: zk.FlagEphemeral | zk.FlagSequence},
		&zk.SetDataRequest{Path: "/a", Version: -1},
		&zk.SetDataRequest{Path: "/b", Data: []byte("new"), Version: 7},
		&zk.DeleteRequest{Path: "/d", Version: -1},
	}
	multi, err := multiBody(ops)
	require.NoError(t, err)
	create := appendCreate(nil, &zk.CreateRequest{Path: "/a", Data: []byte("d"), Acl: acl, Flags: 2})
	empty := appendCreate(nil, &zk.CreateRequest{Path: "/a", Acl: acl})
	cases := map[string]struct {
		op   int32
		ours []byte
		call func(c *zk.Conn)
	}{
		"create":         {opCreate, create, func(c *zk.Conn) { _, _ = c.Create("/a", []byte("d"), 2, acl) }},
		"create of nil":  {opCreate, empty, func(c *zk.Conn) { _, _ = c.Create("/a", nil, 0, acl) }},
		"delete":         {opDelete, DeleteNode("/a").body, func(c *zk.Conn) { _ = c.Delete("/a", -1) }},
		"exists":         {opExists, readRequest("/a", false), func(c *zk.Conn) { _, _, _ = c.Exists("/a") }},
		"exists watched": {opExists, readRequest("/a", true), func(c *zk.Conn) { _, _, _, _ = c.ExistsW("/a") }},
		"get":            {opGetData, readRequest("/a", false), func(c *zk.Conn) { _, _, _ = c.Get("/a") }},
		"get watched":    {opGetData, readRequest("/a", true), func(c *zk.Conn) { _, _, _, _ = c.GetW("/a") }},
		"children":       {opGetChildren2, readRequest("/a", false), func(c *zk.Conn) { _, _, _ = c.Children("/a") }},
		"sync":           {opSync, jute.AppendText(nil, "/a"), func(c *zk.Conn) { _, _ = c.Sync("/a") }},
		"multi":          {opMulti, multi, func(c *zk.Conn) { _, _ = c.Multi(ops...) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t)
				c := p.open(time.Minute)
				conn := p.greet(1, time.Minute)
				e, err := c.Epoch(t.Context())
				require.NoError(t, err)
				go tc.call(e.conn)
				xid, op, body := p.request(conn)
				require.Less(t, xid, int32(firstOwn))
				require.Equal(t, tc.op, op)
				require.Equal(t, body, tc.ours)
				conn.Close()
				closeAll(p, c)
			})
		})
	}
}

// closeAll closes a client whose peer has nothing more to say.
func closeAll(p *peer, c *Client) {
	go func() {
		for conn := range p.dials {
			conn.Close()
		}
	}()
	c.Close()
	close(p.dials)
}

func TestAnOperationThatCannotBePartOfATransactionIsRefused(t *testing.T) {
	_, err := multiBody([]any{zk.CreateRequest{}})
	require.ErrorContains(t, err, "zk.CreateRequest")
}

func TestARefusedTransactionTellsWhichOperationFailed(t *testing.T) {
	b := jute.AppendInt32(appendOpHeader(nil, opError, 0), 0)
	b = jute.AppendInt32(appendOpHeader(b, opError, 0), -103)
	b = jute.AppendInt32(appendOpHeader(b, opError, 0), -2) // the rest: "runtime inconsistency"
	_, err := decodeMulti(appendOpHeader(b, -1, 1), 3)
	var refused *TxnError
	require.True(t, errors.As(err, &refused))
	require.Equal(t, 1, refused.Index)
	require.ErrorIs(t, err, zk.ErrBadVersion)
	require.False(t, Unknown(err))
}

func TestATransactionWithAResultMissingSettlesNothing(t *testing.T) {
	b := jute.AppendText(appendOpHeader(nil, opCreate, 0), "/a")
	_, err := decodeMulti(appendOpHeader(b, -1, 1), 2)
	require.True(t, Unknown(err))
}

func TestCodesWithoutANameSettleNothing(t *testing.T) {
	require.NoError(t, codeError(0))
	require.ErrorIs(t, codeError(-101), zk.ErrNoNode)
	require.True(t, Unknown(classify(codeError(-4))), "connection loss, as an answer")
	require.True(t, Unknown(classify(codeError(-118))), "session moved passes")
	require.True(t, Unknown(classify(codeError(12345))))
	require.True(t, Unimplemented(codeError(-6)))
	for _, code := range []int32{-101, -102, -103, -108, -110, -111, -114} {
		require.False(t, Unknown(classify(codeError(code))), "%d is an answer", code)
	}
}

// The session is gone, so that the transaction was not applied, and will not be.
func TestATransactionWhoseResultsAreThatTheSessionIsGoneIsRefused(t *testing.T) {
	b := jute.AppendInt32(appendOpHeader(nil, opError, 0), codeSessionExpired)
	b = jute.AppendInt32(appendOpHeader(b, opError, 0), -2)
	_, err := decodeMulti(appendOpHeader(b, -1, 1), 2)
	var refused *TxnError
	require.ErrorAs(t, err, &refused)
	require.ErrorIs(t, err, zk.ErrSessionExpired)
	require.False(t, Unknown(err))
}
