package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// assemble makes the report of what was seen.
func (r *Report) assemble(all []*sight, timeout time.Duration) {
	r.Clients = clients(all)
	reachable, told := 0, 0
	for _, s := range all {
		s.finish()
		r.Servers = append(r.Servers, s.Server)
		if s.Reachable {
			reachable++
		}
		if s.has("cons") {
			told++
		}
		r.decided = r.decided || s.dump != nil && s.dump.decides
	}
	r.Tells = reachable > 0 && (r.decided || told == reachable)
	r.Ensemble = ensemble(all)
	r.find(timeout)
}

// finish fills in what one server shows.
func (s *sight) finish() {
	v := s.answer
	s.Words = append(s.Words, s.words...)
	if s.has("srvr") {
		s.Version, s.Mode, s.Connections, s.Nodes = v.version, v.mode, max(-1, v.connections-1), v.nodes
	}
	if v.hasZxid {
		s.Zxid = fmt.Sprintf("0x%x", v.zxid)
	}
	switch {
	case s.failed == nil:
		s.Reachable, s.Serves = true, true
	case s.failed == errNotAsked:
	case s.idle:
		s.Error = "it runs, but does not serve: it has no quorum, or is starting"
	case errors.Is(s.failed, context.Canceled):
		s.Error = fmt.Sprintf("silent: no answer for %v after those of the others", patience)
	default:
		s.Error, s.fix = zkconn.Explain(s.failed)
	}
}

// has reports whether a server allows a word.
func (s *Server) has(word string) bool { return slices.Contains(s.Words, word) }

func ensemble(all []*sight) (e Ensemble) {
	versions := 0
	e.Containers, e.TTL, e.PersistentWatches = true, true, true
	for _, s := range all {
		if s.Mode != "observer" {
			e.Voters++
		}
		if s.Serves {
			e.Serving++
		}
		if s.least > 0 { // what every server grants
			e.TimeoutMin = max(e.TimeoutMin, int(s.least))
		}
		if s.most > 0 && (e.TimeoutMax == 0 || int(s.most) < e.TimeoutMax) {
			e.TimeoutMax = int(s.most)
		}
		if v, ok := releaseOf(s.Version); ok {
			versions++
			e.Containers = e.Containers && v.from(3, 5, 0)
			e.TTL = e.TTL && v.from(3, 5, 3)
			e.PersistentWatches = e.PersistentWatches && v.from(3, 6, 0)
		}
	}
	e.Quorum = e.Serving > 0
	if versions == 0 {
		e.Containers, e.TTL, e.PersistentWatches = false, false, false
	}
	return e
}

// clients joins what the servers say of the sessions that are not ours.
func clients(all []*sight) map[int64]Client {
	m := map[int64]Client{}
	for _, s := range all {
		s.connected(m)
		if s.dump != nil {
			for id, ms := range s.dump.timeouts {
				update(m, id, func(c *Client) { c.TimeoutMS = max(c.TimeoutMS, ms) })
			}
		}
	}
	for _, s := range all {
		if s.dump != nil && s.dump.decides {
			s.expiries(m)
		}
	}
	for _, s := range all {
		delete(m, s.id)
		delete(m, s.second)
	}
	return m
}

func update(m map[int64]Client, id int64, change func(*Client)) {
	c, known := m[id]
	if !known {
		c = Client{Session: fmt.Sprintf("0x%x", uint64(id)), HeardMS: -1, ExpiresInMS: -1}
	}
	change(&c)
	m[id] = c
}

// connected adds the connections of one server. Its clock is read off our own connection, which was answered just before.
func (s *sight) connected(m map[int64]Client) {
	own := s.own()
	if own == nil {
		return
	}
	for _, l := range s.links {
		heard := int64(-1)
		switch {
		case l.lresp > 0 && own.lresp > 0:
			heard = max(0, own.lresp-l.lresp)
		case l.lresp == 0 && l.est > 0 && own.est > 0: // it has resumed its session here, and asked for nothing yet
			heard = max(0, own.est-l.est)
		}
		update(m, l.session, func(c *Client) {
			if c.Connected && (heard < 0 || c.HeardMS >= 0 && heard > c.HeardMS) {
				return // it has moved, and the other connection is the newer one
			}
			c.Connected, c.Address, c.HeardMS, c.TimeoutMS = true, l.address, heard, max(l.timeout, c.TimeoutMS)
		})
	}
}

// expiries adds what the server says that decides when sessions expire. Its calendar is read off our own session.
func (s *sight) expiries(m map[int64]Client) {
	yes, no := true, false
	own := s.dump.expires[s.id]
	// Sessions expire in steps of a tick, so ours expires up to one later than it was granted; the dates are whole seconds.
	tick := max(s.tick, s.least/2)
	for id, at := range s.dump.expires {
		update(m, id, func(c *Client) {
			c.Exists = &yes
			if !own.IsZero() && !at.IsZero() {
				c.ExpiresInMS = max(0, at.Sub(own).Milliseconds()+s.granted.Milliseconds()+tick+1000)
			}
			if !c.Connected && c.ExpiresInMS >= 0 && c.TimeoutMS > 0 {
				c.HeardMS = max(0, c.TimeoutMS-c.ExpiresInMS)
			}
		})
	}
	for _, id := range s.dump.orphans() {
		update(m, id, func(c *Client) { c.Exists = &no })
	}
}
