// Package page shows a survey in a browser: one page, the same as JSON, and a stream of events. Everything that it needs is in the
// program, and nothing is read from anywhere else.
package page

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
)

//go:embed page.html page.css parts.js questions.js page.js
var assets embed.FS

// Options say where the page is, and what its viewers may do.
type Options struct {
	Listen  *net.TCPAddr // of the listener that serves the page
	Token   string       // that a viewer must know; empty for none
	Command string       // of a shell, to which the page adds PATH and --node NAME of an entry to remove
	// Release removes one entry, and reports whether its owner has read the reason. Its error is ErrRefused if the entry is not what
	// it was, and zksync.Ambiguous if it may have been removed. Nil if viewers may only look.
	Release func(context.Context, Order) (told bool, err error)
}

// ErrRefused says that nothing was removed, because the entry is gone or no longer what was shown.
var ErrRefused = errors.New("nothing was removed")

// Page is the handler.
type Page struct {
	options Options
	cookie  string // the value that stands for the token; random, because a browser shows cookies to all ports of a host
	mux     http.ServeMux
	feed    feed
	streams chan struct{} // those that are open
	writing time.Duration // how long a viewer may take for a frame before the stream is closed
}

// maxStreams is how many event streams may be open.
const maxStreams = 100

// New returns a page that shows nothing yet.
func New(o Options) *Page {
	p := &Page{options: o, cookie: rand.Text(), streams: make(chan struct{}, maxStreams), writing: 10 * time.Second}
	p.feed.changed = make(chan struct{})
	p.mux.HandleFunc("GET /{$}", p.page)
	for _, name := range []string{"page.css", "parts.js", "questions.js", "page.js"} {
		p.mux.HandleFunc("GET /"+name, asset)
	}
	p.mux.HandleFunc("GET /api/state", p.state)
	p.mux.HandleFunc("GET /api/events", p.events)
	p.mux.HandleFunc("POST /api/release", p.release)
	return p
}

// Show makes v what all viewers see. It does not wait for them.
func (p *Page) Show(v *survey.View) { p.feed.show(v, p.options) }

func asset(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, r.URL.Path) }
