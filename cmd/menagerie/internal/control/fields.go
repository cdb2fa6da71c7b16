package control

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/zktest"
)

const (
	maxBody     = 64 << 10
	maxDuration = 24 * time.Hour // as of the flags of serve
	maxShown    = 100            // bytes of a value in an error
)

// fromHere refuses requests that a page of another site may have sent through a browser on this machine. Its own name may
// lead to this address (DNS rebinding), so the Host header must be a name of this machine.
func fromHere(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if !strings.EqualFold(host, "localhost") && (err != nil || !ip.IsLoopback()) {
		return refused(http.StatusForbidden, "the header Host is %s, want localhost, 127.0.0.1 or [::1]: other names may be a site in a browser", shown(r.Host))
	}
	for _, origin := range r.Header.Values("Origin") {
		if origin != "http://"+r.Host {
			return refused(http.StatusForbidden, "the header Origin is %s, want none, or %s: a page of another site must not control this server",
				shown(origin), "http://"+r.Host)
		}
	}
	return nil
}

// fields are those of a body, or of the query of a GET, by name.
type fields map[string]json.RawMessage

// read returns the fields of a request, all of which the endpoint knows.
func read(w http.ResponseWriter, r *http.Request, e endpoint) (fields, error) {
	f := fields{}
	if e.method == http.MethodGet {
		for name, values := range r.URL.Query() {
			f[name] = json.RawMessage(values[0])
		}
		return f, f.known(r.URL.Path, e.fields)
	}
	if r.URL.RawQuery != "" {
		return nil, bad("the query %s has no meaning here: send the fields as JSON in the body", shown(r.URL.RawQuery))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, refused(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, bad("the body cannot be read: %v", err)
	}
	if len(body) == 0 {
		return f, nil
	}
	kind := r.Header.Get("Content-Type")
	if media, _, _ := mime.ParseMediaType(kind); media != "application/json" {
		return nil, refused(http.StatusUnsupportedMediaType, "the header Content-Type is %s, want application/json", shown(kind))
	}
	if err := json.Unmarshal(body, &f); err != nil || f == nil {
		return nil, bad("the body is %s, want one object such as %s", shown(string(body)), `{"session":"0x1"}`)
	}
	for name, raw := range f {
		if string(raw) == "null" { // how some languages write what is not given
			delete(f, name)
		}
	}
	return f, f.known(r.URL.Path, e.fields)
}

// known refuses fields that have another name.
func (f fields) known(path string, names []string) error {
	for name := range f {
		if !slices.Contains(names, name) {
			takes := "takes no fields"
			if len(names) > 0 {
				takes = "takes " + strings.Join(names, ", ")
			}
			return bad("unknown field %s: %s %s", shown(name), path, takes)
		}
	}
	return nil
}

func (f fields) has(name string) bool { return f[name] != nil }

// decode reads one field, which must be there.
func (f fields) decode(name, want string, into any) error {
	if !f.has(name) {
		return bad("%q is missing, want %s", name, want)
	}
	if json.Unmarshal(f[name], into) != nil {
		return f.wrong(name, want)
	}
	return nil
}

func (f fields) wrong(name, want string) error {
	raw := string(f[name])
	if len(raw) > maxShown {
		raw = strings.ToValidUTF8(raw[:maxShown], "") + "..."
	}
	return bad("%q is %s, want %s", name, raw, want)
}

// text reads a text that is not empty.
func (f fields) text(name, want string) (s string, err error) {
	if err = f.decode(name, want, &s); err == nil && s == "" {
		err = f.wrong(name, want)
	}
	return s, err
}

// count reads a whole number, which may be left out.
func (f fields) count(name string, least int) (n int, err error) {
	if !f.has(name) {
		return 0, nil
	}
	want := "a whole number, at least " + strconv.Itoa(least)
	if err = f.decode(name, want, &n); err == nil && n < least {
		err = f.wrong(name, want)
	}
	return n, err
}

func (f fields) duration(name string) (time.Duration, error) {
	const want = `more than zero and at most 24h, written as "500ms", "10s" or "1m30s"`
	s, err := f.text(name, want)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > maxDuration {
		return 0, f.wrong(name, want)
	}
	return d, nil
}

// op reads the name of an operation, as /requests prints it.
func (f fields) op() (zktest.Op, error) {
	var names []string
	for op := zktest.Any; op < zktest.Other; op++ {
		names = append(names, op.String())
	}
	want := "one of " + strings.Join(names, ", ")
	s, err := f.text("op", want)
	if err != nil {
		return 0, err
	}
	if i := slices.Index(names, s); i >= 0 {
		return zktest.Any + zktest.Op(i), nil
	}
	return 0, f.wrong("op", want)
}

// session reads the id of a session.
func (f fields) session() (id int64, err error) {
	const want = `the id of a session, as the text "0x1" or as a number`
	var s string
	if !f.has("session") || f["session"][0] == '"' {
		if s, err = f.text("session", want); err != nil {
			return 0, err
		}
		digits, ok := strings.CutPrefix(s, "0x")
		n, err := strconv.ParseUint(digits, 16, 64)
		if err != nil || !ok || n > math.MaxInt64 {
			return 0, f.wrong("session", want)
		}
		return int64(n), nil
	}
	return id, f.decode("session", want, &id)
}

// shown quotes what came from outside, and cuts it.
func shown(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown] + "..."
	}
	return strconv.Quote(s)
}
