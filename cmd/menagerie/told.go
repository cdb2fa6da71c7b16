package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// teller is the log of the sessions: lines for people on standard error. Without -v it has only
// warnings, with -v outages, too, with -vv everything.
func (a *app) teller() *teller {
	levels := []slog.Level{slog.LevelWarn, slog.LevelInfo, slog.LevelDebug}
	t := &teller{w: a.stderr, level: levels[min(a.verbosity, len(levels)-1)]}
	if a.verbosity == 0 && strings.Contains(a.target(), ",") {
		t.elsewhere = time.Second
	}
	return t
}

// teller is a slog.Handler that writes "menagerie: connected again after 3s".
type teller struct {
	w     io.Writer
	level slog.Level
	// elsewhere is how long it is of no interest that a server cannot be reached, because another one may be.
	elsewhere time.Duration

	mu      sync.Mutex
	delayed []*time.Timer
}

// connected forgets the servers that could not be reached, if one was soon enough.
func (t *teller) connected() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.delayed {
		line.Stop()
	}
}

// reported are the warnings that are not printed without -v: either the command's last line has their consequence, or there is
// none, as for an outage that a session outlasts.
var reported = []string{"the session is refused for good", "lease lost", "connection lost"}

func (t *teller) Enabled(_ context.Context, l slog.Level) bool { return l >= t.level }
func (t *teller) WithAttrs([]slog.Attr) slog.Handler           { return t }
func (t *teller) WithGroup(string) slog.Handler                { return t }

func (t *teller) Handle(_ context.Context, r slog.Record) error {
	if t.level >= slog.LevelWarn && slices.Contains(reported, r.Message) {
		return nil
	}
	line := fmt.Sprintf("menagerie: %s\n", oneLine(inWords(told(r))))
	if r.Message != "cannot connect" || t.elsewhere == 0 {
		_, err := io.WriteString(t.w, line)
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delayed = append(t.delayed, time.AfterFunc(t.elsewhere, func() { _, _ = io.WriteString(t.w, line) }))
	return nil
}

// told puts a record into words.
func told(r slog.Record) string {
	said := map[string]string{}
	var rest string
	r.Attrs(func(at slog.Attr) bool {
		said[at.Key] = at.Value.String()
		rest += ", " + at.Key + " " + at.Value.String()
		return true
	})
	switch after, ok := said["after"]; r.Message {
	case "cannot connect":
		text := "cannot connect to " + said["server"] + ": " + said["error"]
		if r.Level >= slog.LevelWarn {
			text += "; still trying"
		}
		return text
	case "connection lost", "disconnected", "session lost":
		return r.Message + ": " + said["error"]
	case "connected", "connected again":
		if ok { // else it is of the debug level
			return r.Message + " after " + after
		}
	case "connected again in a new session":
		return r.Message + " after " + after + ": " + said["error"]
	case "open to everybody, although WithACL is given":
		return said["path"] + " is open to everybody, although --acl is given: " + said["reason"]
	case "created the chroot, which did not exist":
		return "created the chroot " + said["path"] + ", which did not exist; --existing-chroot refuses that"
	}
	return r.Message + rest
}
