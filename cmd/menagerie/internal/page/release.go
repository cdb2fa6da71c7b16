package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/zksync"
)

// Order is the entry to remove, as it was shown, and why.
type Order struct {
	Path   string          `json:"path"`
	Node   string          `json:"node"`
	Token  string          `json:"token"`
	State  zksync.Standing `json:"state"` // held if it is left out
	Reason string          `json:"reason"`
}

const (
	maxOrder  = 1 << 20 // no path is longer
	maxReason = 200     // characters, as for menagerie release
	// fresh is how old a frame may be that a decision relies on. There is one each second.
	fresh = 5 * time.Second
	// removing is how long the servers may take for it.
	removing = 10 * time.Second
)

// release removes one entry, if it is still what the newest frame shows, and that is true now.
func (p *Page) release(w http.ResponseWriter, r *http.Request) {
	if p.options.Release == nil {
		refuse(w, r, http.StatusForbidden, "this page is read-only: start menagerie ui with --allow-release")
		return
	}
	if r.Header.Get("X-Menagerie") == "" { // a foreign page cannot send it without asking first
		refuse(w, r, http.StatusForbidden, "the header X-Menagerie is missing")
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, r, http.StatusUnsupportedMediaType, "the body must be application/json")
		return
	}
	o, err := readOrder(http.MaxBytesReader(w, r.Body, maxOrder))
	if err != nil {
		refuse(w, r, http.StatusBadRequest, "the body must be one object with path, node, token and reason: %v", err)
		return
	}
	f, _ := p.feed.get()
	switch {
	case f == nil:
		refuse(w, r, http.StatusServiceUnavailable, "nothing was removed: %s", nothingYet)
	case f.Outage != "":
		refuse(w, r, http.StatusServiceUnavailable, "nothing was removed: %s", f.Outage)
	case time.Since(f.Now) > fresh:
		refuse(w, r, http.StatusServiceUnavailable, "nothing was removed: this page has no new view")
	case !shows(f.View, o):
		refuse(w, r, http.StatusConflict, "nothing was removed: %s is gone, or no longer %s", o.Node, o.State)
	default:
		p.remove(w, r, o)
	}
}

func (p *Page) remove(w http.ResponseWriter, r *http.Request, o Order) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), removing) // a viewer that leaves does not stop it half-way
	defer cancel()
	told, err := p.options.Release(ctx, o)
	why := fmt.Sprint(err)
	if errors.Is(err, context.DeadlineExceeded) {
		why = "the servers do not answer"
	}
	switch {
	case errors.Is(err, ErrRefused):
		refuse(w, r, http.StatusConflict, "%v", err)
	case err != nil && zksync.Ambiguous(err):
		refuse(w, r, http.StatusServiceUnavailable, "it is not known whether it was removed, look again: %s", why)
	case err != nil:
		refuse(w, r, http.StatusServiceUnavailable, "nothing was removed: %s", why)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(encode(map[string]bool{"released": true, "told": told}), '\n'))
	}
}

func readOrder(body io.Reader) (o Order, err error) {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		return o, err
	}
	switch _, err := d.Token(); {
	case err != io.EOF:
		return o, errors.New("something follows the object")
	case o.Path == "" || o.Node == "" || o.Token == "":
		return o, errors.New("path, node or token is missing")
	case utf8.RuneCountInString(o.Reason) > maxReason:
		return o, errors.New("the reason has more than 200 characters")
	}
	o.State = cmp.Or(o.State, zksync.Held)
	return o, nil
}

// shows reports whether v has the entry.
func shows(v *survey.View, o Order) bool {
	for _, object := range v.Objects {
		if object.Path != o.Path {
			continue
		}
		for _, e := range object.Entries {
			if e.Node == o.Node && e.Token == o.Token && e.State == o.State {
				return true
			}
		}
	}
	return false
}
