package proving

import (
	"context"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// Account is a node that is written under a lock.
const Account = "/data/account"

// Write is a request that writes it.
func Write(data string) *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: Account, Data: []byte(data), Version: -1}
}

// Verified checks what Verify says of a token.
func (v *Env) Verified(want error, s *zksync.Session, path string, token zksync.Token) {
	v.T.Helper()
	v.Flush()
	require.ErrorIs(v.T, zksync.Verify(context.Background(), s, path, token), want)
}
