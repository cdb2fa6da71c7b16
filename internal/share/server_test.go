package share_test

import (
	"github.com/go-menagerie/menagerie/internal/share"
	"github.com/go-menagerie/menagerie/zktest"
)

func init() { share.Start = func() share.Server { return server{zktest.Start()} } }

type server struct{ *zktest.Server }

func (s server) Ephemerals() map[int64][]string {
	all := make(map[int64][]string)
	for _, session := range s.Sessions() {
		all[session.ID] = session.Ephemerals
	}
	return all
}
