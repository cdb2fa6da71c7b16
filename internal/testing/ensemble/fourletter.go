package ensemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

// wordLimit bounds one four-letter command when the context does not: a frozen server accepts the
// connection and never answers.
const wordLimit = 5 * time.Second

// replyLimit bounds what is read of an answer; the longest ones list every watch.
const replyLimit = 64 << 20

// Mode is the part that a server plays.
type Mode string

// The modes, in ZooKeeper's own words.
const (
	ModeLeader     Mode = "leader"
	ModeFollower   Mode = "follower"
	ModeStandalone Mode = "standalone"
)

// errNotServing is returned by Mode for a server that runs but has no quorum or is still starting.
var errNotServing = errors.New("server is not serving")

// FourLetter sends a four-letter word (ruok, srvr, mntr, cons, wchp ...) to the server and returns its
// whole answer. All words are allowed.
func (s *Server) FourLetter(ctx context.Context, word string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, wordLimit)
	defer cancel()
	answer, err := s.ask(ctx, s.addr, word)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		err = ctx.Err() // which the failed read only follows from
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = context.DeadlineExceeded // the dial has a timer of its own for it, which was first
	}
	return "", fmt.Errorf("ensemble: %s %s: %w", word, s.addr, err)
}

func ask(ctx context.Context, addr, word string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(conn, replyLimit))
	return string(answer), err
}

// Mntr returns the server's counters (zk_packets_received, zk_watch_count, zk_ephemerals_count ...).
func (s *Server) Mntr(ctx context.Context) (map[string]string, error) {
	return s.pairs(ctx, "mntr", "\t")
}

// Mode tells which part the server plays now. It is an error if it plays none: it is starting, or has
// no quorum, or does not answer.
func (s *Server) Mode(ctx context.Context) (Mode, error) {
	values, err := s.pairs(ctx, "srvr", ": ")
	if err != nil {
		return "", err
	}
	if mode, ok := values["Mode"]; ok {
		return Mode(mode), nil
	}
	return "", fmt.Errorf("ensemble: %s: %w", s.addr, errNotServing)
}

// probe is Mode for loops, which try again and must not hang on one frozen server.
func (s *Server) probe(ctx context.Context) (Mode, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.Mode(ctx)
}

// pairs reads an answer of lines "key<separator>value"; lines of another form are left out.
func (s *Server) pairs(ctx context.Context, word, separator string) (map[string]string, error) {
	answer, err := s.FourLetter(ctx, word)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string)
	for line := range strings.Lines(answer) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), separator); ok {
			values[key] = value
		}
	}
	return values, nil
}

// pause waits a moment between two looks at a server, which does not say by itself when it is ready. It returns the context's error if that ends first.
func pause(ctx context.Context) error {
	t := time.NewTimer(25 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
