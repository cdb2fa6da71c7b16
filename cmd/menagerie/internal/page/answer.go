package page

import (
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/zksync"
)

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"dur":     func(m survey.Millis) string { return wording.Shortly(time.Duration(m)) },
	"round":   func(f float64) string { return fmt.Sprintf("%.1f", f) },
	"waiting": func(e *survey.Entry) bool { return e.State == zksync.Waiting },
	"age":     func(now, at time.Time) string { return wording.Shortly(now.Sub(at)) },
	"brief":   brief,
}).ParseFS(assets, "page.html"))

// brief keeps the beginning of a long text.
func brief(s string) string {
	if r := []rune(s); len(r) > 300 {
		return string(r[:300]) + "..."
	}
	return s
}

// refuse answers with an error: as JSON to a program, as text to a person.
func refuse(w http.ResponseWriter, r *http.Request, code int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	kind, body := "text/plain; charset=utf-8", []byte(text)
	if strings.HasPrefix(r.URL.Path, "/api/") {
		kind, body = "application/json", encode(map[string]string{"error": text})
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n'))
}

// page is the page with the newest frame, for a browser that runs no scripts.
func (p *Page) page(w http.ResponseWriter, _ *http.Request) {
	f, _ := p.feed.get()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pageTemplate.Execute(w, f) // it fails if the viewer has gone
}

func (p *Page) state(w http.ResponseWriter, r *http.Request) {
	f, _ := p.feed.get()
	if f == nil {
		refuse(w, r, http.StatusServiceUnavailable, "%s", nothingYet)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(f.full, '\n'))
}

const nothingYet = "the servers have not answered yet"

// events sends a frame at each change, and every second. If there were several while the viewer was slow it sends the newest.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		refuse(w, r, http.StatusServiceUnavailable, "%d viewers are the most: close another one", maxStreams)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for content := 0; ; {
		f, changed := p.feed.get()
		name, data := "none", []byte("{}")
		switch {
		case f == nil:
		case f.content != content:
			content, name, data = f.content, "state", f.full
		default:
			name, data = "beat", f.beat
		}
		_ = control.SetWriteDeadline(time.Now().Add(p.writing))
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
