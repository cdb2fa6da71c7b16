package storm_test

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

// kind is a kind of servers.
type kind struct {
	name    string
	members int
	opts    []zktest.Option
	slow    bool // a write takes its time, and so does a new session
	still   bool // nothing goes wrong, but one process is near and the others are far
}

// kinds are all that there are; each recipe meets each of them.
var kinds = []kind{
	{name: "one server", members: 1},
	{name: "ensemble", members: 3, opts: []zktest.Option{zktest.WithTick(500 * ms)}},
	{name: "3.4", members: 1, opts: []zktest.Option{zktest.WithVersion("3.4")}},
	{name: "slow", members: 1, opts: []zktest.Option{zktest.WithCommitLatency(60 * ms)}, slow: true},
	{name: "near and far", members: 1, still: true},
	{name: "3.5", members: 1, opts: []zktest.Option{zktest.WithVersion("3.5")}},
	{name: "3.6", members: 1, opts: []zktest.Option{zktest.WithVersion("3.6")}},
	{name: "3.9", members: 1, opts: []zktest.Option{zktest.WithVersion("3.9")}},
}

// draws is the first recipe of a seed and the kind of its servers. So many seeds as there are pairs have them all.
func draws(seed uint64) (recipe, servers int) {
	n := uint64(len(recipes))
	return int(seed % n), int(seed / n % uint64(len(kinds)))
}

// servers are one server, or an ensemble.
type servers struct {
	*zktest.Server // the one, or the first member
	kind
	e   *zktest.Ensemble // nil if there is one
	all []*zktest.Server
}

func newServers(t testing.TB, k kind) *servers {
	if k.members == 1 {
		s := zktest.Run(t, k.opts...)
		return &servers{Server: s, kind: k, all: []*zktest.Server{s}}
	}
	s := &servers{kind: k, e: zktest.RunEnsemble(t, k.members, k.opts...)}
	for i := range k.members {
		s.all = append(s.all, s.e.Server(i))
	}
	s.Server = s.all[0]
	return s
}

// addresses is the connect string.
func (s *servers) addresses() string {
	if s.e == nil {
		return "127.0.0.1:2181"
	}
	return strings.Join(s.e.Servers(), ",")
}

// DialContext hides that of the first member, and so do those below.
func (s *servers) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if s.e == nil {
		return s.Server.DialContext(ctx, network, address)
	}
	return s.e.DialContext(ctx, network, address)
}

// newest is the member that knows all.
func (s *servers) newest() *zktest.Server {
	if s.e != nil && s.e.Leader() >= 0 {
		return s.all[s.e.Leader()]
	}
	return s.Server
}

func (s *servers) Children(path string) []string        { return s.newest().Children(path) }
func (s *servers) Node(path string) (zktest.Node, bool) { return s.newest().Node(path) }
func (s *servers) Partition(id int64) (heal func())     { return s.each(id, (*zktest.Server).Partition) }
func (s *servers) DropRequests(id int64) (heal func()) {
	return s.each(id, (*zktest.Server).DropRequests)
}
func (s *servers) DropReplies(id int64) (heal func()) {
	return s.each(id, (*zktest.Server).DropReplies)
}

// each has something befall the network between a client and each member.
func (s *servers) each(id int64, f func(*zktest.Server, int64) func()) (heal func()) {
	var heals []func()
	for _, m := range s.all {
		heals = append(heals, f(m, id))
	}
	return func() {
		for _, heal := range heals {
			heal()
		}
	}
}

func (s *servers) ExpireSilently(id int64) (heal func()) {
	heal = s.Partition(id)
	s.Expire(id)
	return heal
}

func (s *servers) Disconnect(id int64) {
	for _, m := range s.all {
		m.Disconnect(id)
	}
}

func (s *servers) Delay(id int64, there, back time.Duration) {
	for _, m := range s.all {
		m.Delay(id, there, back)
	}
}

// Refuse has all refuse connections.
func (s *servers) Refuse() (allow func()) {
	return s.each(0, func(m *zktest.Server, _ int64) func() { return m.Refuse() })
}

// watched has functions see each request and each transaction.
func (s *servers) watched(judge func(*zktest.Request) zktest.Verdict, commit func(zktest.Txn)) {
	if s.e == nil {
		s.Server.OnCommit(commit)
		s.Server.InterceptFunc(judge)
		return
	}
	s.e.OnCommit(commit)
	s.e.InterceptFunc(judge)
}

func (s *servers) Log() (all []zktest.Request) {
	for _, m := range s.all {
		all = append(all, m.Log()...)
	}
	slices.SortStableFunc(all, func(a, b zktest.Request) int { return cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) })
	return all
}
