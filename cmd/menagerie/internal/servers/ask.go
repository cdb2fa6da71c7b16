package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// listing bounds the answers that have a line for each client.
const listing = 64 << 20

// ask sends a four-letter word, and returns the whole answer.
func (s *sight) ask(ctx context.Context, word string, most int64) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // closes the connection
	conn, err := zkconn.DialServer(ctx, s.o.config(0), s.Addr, remaining(ctx))
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(conn, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("the answer to %s has more than %d bytes", word, most)
	}
	return string(text), err
}

func remaining(ctx context.Context) time.Duration {
	end, _ := ctx.Deadline()
	return time.Until(end)
}

func refused(word, text string) bool { return strings.HasPrefix(text, word+refusal) }

func isIdle(text string) bool { return strings.HasPrefix(text, idle) }

// allowed asks for a word, and returns the answer; empty if there is none.
func (s *sight) allowed(ctx context.Context, word string) string {
	text, err := s.ask(ctx, word, listing)
	if err != nil || refused(word, text) || isIdle(text) {
		return ""
	}
	return text
}

// errNotAsked is why a brief look does not know whether a server serves.
var errNotAsked = errors.New("not asked")

// session opens a session at this very server: that shows that the server serves. Beside it the other words are asked for.
func (s *sight) session(ctx context.Context) {
	select { // so that srvr does not count our session
	case <-s.asked:
	case <-time.After(s.o.Limit / 4):
	case <-ctx.Done():
	}
	if s.o.Brief && s.allowed(ctx, "cons") == "" && s.allowed(ctx, "dump") == "" {
		s.failed = errNotAsked
		return
	}
	timeout := usual
	if s.o.Range {
		timeout = longest
	}
	p, err := zkconn.OpenProbe(ctx, s.o.config(timeout), s.Addr, remaining(ctx))
	if s.failed = err; err != nil {
		return
	}
	s.id, s.granted = p.ID, p.Timeout
	began := time.Now()
	if err := p.Ask(); err == nil {
		s.LatencyMS = float64(time.Since(began).Microseconds()) / 1000
	}
	s.clients(ctx)
	s.limits(ctx)
	p.Close()
}

// clients asks for cons, at once after a request of ours: so our own connection shows what the server's clock says.
func (s *sight) clients(ctx context.Context) {
	if text := s.allowed(ctx, "cons"); text != "" {
		if s.links = parseCons(text); s.own() != nil {
			s.words = append(s.words, "cons")
		}
	}
	d, ok := parseDump(s.allowed(ctx, "dump"))
	if !ok {
		return
	}
	if len(d.orphans()) > 0 { // the server prints the sessions before the nodes: what is new in between looks like an orphan
		again, ok := parseDump(s.allowed(ctx, "dump"))
		if !ok {
			return
		}
		for id := range again.owners {
			again.owners[id] = d.owners[id] // only those that both show
		}
		d = again
	}
	s.dump, s.words = &d, append(s.words, "dump")
}

// own is our own connection.
func (s *sight) own() *link {
	for i, c := range s.links {
		if c.session == s.id {
			return &s.links[i]
		}
	}
	return nil
}

// limits learns the range of session timeouts.
func (s *sight) limits(ctx context.Context) {
	if text := s.allowed(ctx, "conf"); text != "" {
		if s.least, s.most, s.tick = parseConf(text); s.least > 0 && s.most > 0 {
			s.words = append(s.words, "conf")
			return
		}
	}
	if !s.o.Range {
		return
	}
	p, err := zkconn.OpenProbe(ctx, s.o.config(time.Millisecond), s.Addr, remaining(ctx))
	if err != nil {
		return
	}
	defer p.Close()
	s.second, s.least, s.most = p.ID, p.Timeout.Milliseconds(), s.granted.Milliseconds()
}
