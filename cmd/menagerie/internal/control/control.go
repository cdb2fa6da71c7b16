// Package control gives tests in any language the faults of package zktest: HTTP with JSON, for menagerie serve --control.
package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/zktest"
)

// Control is an http.Handler that controls one server.
type Control struct {
	srv    *zktest.Server
	manual bool // the server's clock
	log    *slog.Logger

	mu     sync.Mutex
	faults []*fault // that were not ended
}

// New returns the control of a server. manual says that it was made with [zktest.WithManualClock].
func New(srv *zktest.Server, manual bool, log *slog.Logger) *Control {
	return &Control{srv: srv, manual: manual, log: log}
}

// endpoint is what the control does at one path.
type endpoint struct {
	method string
	fields []string // of the body, or of the query of a GET
	do     func(*Control, fields) (any, error)
}

// ofRules are the fields of all faults of single requests.
var ofRules = []string{"op", "path", "nth", "session"}

var endpoints = map[string]endpoint{
	"/expire":       {http.MethodPost, []string{"session"}, (*Control).expire},
	"/disconnect":   {http.MethodPost, []string{"session"}, (*Control).disconnect},
	"/partition":    {http.MethodPost, []string{"session"}, (*Control).partition},
	"/heal":         {http.MethodPost, []string{"session"}, (*Control).heal},
	"/lose-reply":   {http.MethodPost, ofRules, (*Control).loseReply},
	"/lose-request": {http.MethodPost, ofRules, (*Control).loseRequest},
	"/delay":        {http.MethodPost, append(ofRules[:len(ofRules):len(ofRules)], "by"), (*Control).delay},
	"/refuse":       {http.MethodPost, []string{"for"}, (*Control).refuse},
	"/restart":      {http.MethodPost, []string{"empty"}, (*Control).restart},
	"/advance":      {http.MethodPost, []string{"by"}, (*Control).advance},
	"/tree":         {http.MethodGet, nil, (*Control).tree},
	"/requests":     {http.MethodGet, []string{"since"}, (*Control).requests},
	"/sessions":     {http.MethodGet, nil, (*Control).sessions},
	"/leftovers":    {http.MethodGet, nil, (*Control).leftovers},
}

// problem is an error with its HTTP status.
type problem struct {
	status int
	text   string
}

func (p *problem) Error() string { return p.text }

func refused(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

func bad(format string, args ...any) error { return refused(http.StatusBadRequest, format, args...) }

// ServeHTTP implements http.Handler.
func (c *Control) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := c.answer(w, r)
	status := http.StatusOK
	if err != nil {
		status = http.StatusInternalServerError
		if p := (*problem)(nil); errors.As(err, &p) {
			status = p.status
		}
		answer = map[string]string{"error": err.Error()}
	}
	if text, ok := answer.(string); ok {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprint(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(answer) // an error is the client's: it has gone
}

// answer returns what is encoded as JSON, or a text.
func (c *Control) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := fromHere(r); err != nil {
		return nil, err
	}
	e, ok := endpoints[r.URL.Path]
	if !ok {
		return nil, refused(http.StatusNotFound, "nothing is at %q, want one of %s", r.URL.Path, paths())
	}
	if r.Method != e.method {
		w.Header().Set("Allow", e.method)
		return nil, refused(http.StatusMethodNotAllowed, "%s takes %s, not %s", r.URL.Path, e.method, r.Method)
	}
	f, err := read(w, r, e)
	if err != nil {
		return nil, err
	}
	if r.URL.Path == "/tree" && wantsText(r) {
		return c.srv.Tree(), nil
	}
	return e.do(c, f)
}

func paths() string {
	return strings.Join(slices.Sorted(maps.Keys(endpoints)), ", ")
}

// wantsText reports whether a client has asked for text, and not also for JSON, as browsers' libraries do.
func wantsText(r *http.Request) bool {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	return strings.Contains(accept, "text/plain") && !strings.Contains(accept, "json")
}

// attempt runs what zktest panics about, where it would fail a test.
func attempt(f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case string:
			err = errors.New(strings.TrimPrefix(p, "zktest: "))
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// reopen runs what opens the server's port again, which another program may have taken.
func reopen(f func()) error {
	if err := attempt(f); err != nil {
		return fmt.Errorf("%w; free the port, then POST /restart opens it", err)
	}
	return nil
}
