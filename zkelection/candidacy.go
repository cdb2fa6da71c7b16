package zkelection

import (
	"context"
	"errors"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/queue"
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
		c, there, err := e.candidate(ctx, ep, en)
		if err != nil {
			return nil, err
		}
		if there {
			list = append(list, c)
		}
	}
	return list, nil
}

// candidate reads one candidate's node. It reports false if the candidate has left meanwhile.
func (e *Election) candidate(ctx context.Context, ep *zkconn.Epoch, en queue.Entry) (c Candidate, there bool, err error) {
	path := e.node(en)
	data, st, err := ep.Get(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return c, false, nil
	}
	if err != nil {
		return c, false, err
	}
	x := node.Decode(data)
	if x.ID == "" { // a contender of another library, or of a mutex on this path
		x.ID = x.Name
	}
	return Candidate{
		ID: x.ID, Data: x.Data, Session: st.EphemeralOwner,
		Token: zksync.Token{Zxid: st.Czxid}, Node: e.at.Local(path),
	}, true, nil
}

// node is the path of a candidate's node on the servers.
func (e *Election) node(en queue.Entry) string { return e.grants.Queue().Dir + "/" + en.Name }
