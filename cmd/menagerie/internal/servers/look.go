// Package servers looks at the servers of a connect string: which of them answer, what they are, and from which clients they
// have heard.
package servers

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// Options say how to reach the servers.
type Options struct {
	Servers []string // host:port
	// Dial connects; nil for plain TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS  *tls.Config // as the sessions use it; nil without TLS
	// Limit bounds the whole look; zero is 10 s.
	Limit time.Duration
	// Brief looks for the clients only: it opens no session at a server that does not allow cons or dump.
	Brief bool
	// Range also learns the range of session timeouts, by a second session at each server that does not allow conf.
	Range bool
	// Timeout is the session timeout that the caller uses; a finding says if the servers do not grant it. Zero is none.
	Timeout time.Duration
}

// longest is more than any server grants: it grants the most that it allows.
const longest = 24 * time.Hour

// usual is what a session of ours asks for that does not learn the longest.
const usual = 10 * time.Second

// watching is how long a server that is behind gets to catch up.
const watching = 500 * time.Millisecond

// patience is how long the other servers may take when more than half have shown that they serve.
const patience = 3 * time.Second

// Look looks at all servers at the same time. It never fails: the report says what could not be read.
func Look(ctx context.Context, o Options) *Report {
	r := &Report{At: time.Now()}
	o.Limit = cmp.Or(o.Limit, 10*time.Second)
	ctx, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()
	all := make([]*sight, len(o.Servers))
	var words, sessions sync.WaitGroup
	var serving atomic.Int32
	// A silent server must not keep the others from being asked again.
	patient, enough := context.WithCancel(ctx)
	defer enough()
	brief, over := context.WithTimeout(patient, 2*o.Limit/3)
	defer over()
	for i, addr := range o.Servers {
		s := &sight{o: &o, asked: make(chan struct{}), Server: Server{Addr: addr, LatencyMS: -1, Connections: -1, Nodes: -1, ZxidLag: -1, Words: []string{}}}
		all[i] = s
		words.Go(func() { s.vitals(brief) })
		sessions.Go(func() {
			if s.session(patient); s.failed == nil && 2*int(serving.Add(1)) > len(o.Servers) {
				time.AfterFunc(patience, enough) // whatever is silent is down
			}
		})
	}
	words.Wait()
	lags(ctx, all)
	sessions.Wait()
	r.assemble(all, o.Timeout)
	return r
}

// sight is one server as it is seen. The fields of the first block are written by vitals and lags, the others by session.
type sight struct {
	Server
	o       *Options
	asked   chan struct{} // closed when vitals is done
	answer  vitals
	idle    bool
	refuses bool // srvr

	failed      error // of the session
	granted     time.Duration
	least, most int64 // of session timeouts, in ms; 0 for unknown
	tick        int64
	id          int64 // of our session
	second      int64 // of the other one, if there was one
	words       []string
	links       []link
	dump        *dump
}

// vitals asks for srvr.
func (s *sight) vitals(ctx context.Context) {
	defer close(s.asked)
	text, err := s.ask(ctx, "srvr", 1<<20)
	if err != nil {
		return // the session says why
	}
	answer, ok := parseSrvr(text)
	s.refuses, s.idle = refused("srvr", text), isIdle(text)
	s.Reachable = ok || s.refuses || s.idle
	if !ok {
		return
	}
	s.answer = answer
	s.Words = append(s.Words, "srvr")
}

// lags asks the servers again that are behind the first answers. A server that has caught up with these is not behind:
// it was asked earlier than the one that was ahead.
func lags(ctx context.Context, all []*sight) {
	ahead := uint64(0)
	for _, s := range all {
		ahead = max(ahead, s.answer.zxid)
	}
	for _, pause := range []time.Duration{0, watching} {
		var again sync.WaitGroup
		wait(ctx, pause, all, ahead)
		for _, s := range all {
			if s.behind(ahead) > 0 {
				again.Go(func() { s.lookAgain(ctx) })
			}
		}
		again.Wait()
	}
	for _, s := range all {
		s.ZxidLag = s.behind(ahead)
	}
}

// wait waits if a server is behind.
func wait(ctx context.Context, d time.Duration, all []*sight, ahead uint64) {
	for _, s := range all {
		if s.behind(ahead) > 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
			return
		}
	}
}

// behind is by how many transactions; -1 if that is unknown: the greater half of a zxid is the number of the leader's term.
func (s *sight) behind(ahead uint64) int64 {
	if !s.answer.hasZxid || s.answer.zxid>>32 != ahead>>32 {
		return -1
	}
	return int64(ahead - min(ahead, s.answer.zxid))
}

func (s *sight) lookAgain(ctx context.Context) {
	text, _ := s.ask(ctx, "srvr", 1<<20)
	v, _ := parseSrvr(text)
	s.answer.zxid, s.answer.hasZxid = v.zxid, v.hasZxid // without an answer it may have caught up, or not
}

// config is how to open a session with a timeout.
func (o *Options) config(timeout time.Duration) zkconn.Config {
	c := zkconn.Config{Timeout: timeout, Dial: o.Dial}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if o.TLS != nil {
		c.Secure = o.secure
	}
	return c
}

func (o *Options) secure(ctx context.Context, raw net.Conn, host string) (net.Conn, error) {
	config := o.TLS.Clone()
	config.ServerName = cmp.Or(config.ServerName, host)
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, &zkconn.TLSError{Err: err}
	}
	return conn, nil
}
