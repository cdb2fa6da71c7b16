package zkelection

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/zkconn"
	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-zookeeper/zk"
)

// read reads the first candidates in order, at most limit; the first one leads. The queue of an election is
// that of a mutex; its nodes also have the candidate's ID and Data.
func (e *Election) read(ctx context.Context, ep *zkconn.Epoch, limit int) ([]Candidate, error) {
	q := e.grants.Queue()
	entries, err := q.List(ctx, ep)
	if err != nil {
		return nil, err
	}
	list := []Candidate{}
	for _, en := range entries {
		if len(list) == limit {
			break
		}
		path := q.Dir + "/" + en.Name
		data, st, err := ep.Get(ctx, path)
		if errors.Is(err, zk.ErrNoNode) {
			continue // has left meanwhile
		}
		if err != nil {
			return nil, err
		}
		x := node.Decode(data)
		if x.ID == "" { // a contender of another library, or of a mutex on this path
			x.ID = x.Name
		}
		list = append(list, Candidate{
			ID: x.ID, Data: x.Data, Session: st.EphemeralOwner,
			Token: zksync.Token{Zxid: st.Czxid}, Node: e.at.Local(path),
		})
	}
	return list, nil
}
