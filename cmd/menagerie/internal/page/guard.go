package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// policy lets the page use what this program serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'none'; frame-ancestors 'none'; base-uri 'none'"

// ServeHTTP refuses foreign hosts, viewers without the token, and foreign pages.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	switch {
	case !p.ours(r.Host):
		refuse(w, r, http.StatusForbidden, "the host %q is not where this page is: open the address that menagerie ui has printed (with ssh -L, the same port here)", r.Host)
	case p.options.Token != "" && !p.admit(w, r):
	case !sameOrigin(r):
		refuse(w, r, http.StatusForbidden, "a page of another origin has asked for this: only this page may")
	default:
		p.mux.ServeHTTP(w, r)
	}
}

// ours reports whether a browser that names this host has asked its own machine, or the one that it was sent to. Otherwise the name
// of a foreign page's host may lead here. A listener that other machines reach has many names; its cookie protects it.
func (p *Page) ours(host string) bool {
	listen := p.options.Listen
	if !listen.IP.IsLoopback() {
		return p.options.Token != ""
	}
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
	}
	ip := net.ParseIP(name)
	return port == strconv.Itoa(listen.Port) && (strings.EqualFold(name, "localhost") || ip != nil && ip.IsLoopback())
}

// sameOrigin reports whether the request is not of a page of another origin. A browser says so of each request that changes something.
func sameOrigin(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	site, origin := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Origin")
	if origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	switch {
	case reads && !strings.HasPrefix(r.URL.Path, "/api/"):
		return true // the page itself may be linked to
	case site == "":
		return reads || origin != ""
	}
	return site == "same-origin" || site == "none" && reads // none is a user's own doing
}

// admit lets a viewer in that has the cookie. One that gives the token gets it, and an address without the token.
func (p *Page) admit(w http.ResponseWriter, r *http.Request) bool {
	name := fmt.Sprintf("menagerie-ui-%d", p.options.Listen.Port)
	query := r.URL.Query()
	if c, err := r.Cookie(name); err == nil && same(c.Value, p.cookie) && !query.Has("token") {
		return true
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads || !same(query.Get("token"), p.options.Token) {
		refuse(w, r, http.StatusUnauthorized, "this page needs a token: open the address that menagerie ui has printed, which ends with ?token=TOKEN")
		return false
	}
	query.Del("token")
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, `/\`), RawQuery: query.Encode()} // two slashes would be another host
	http.SetCookie(w, &http.Cookie{Name: name, Value: p.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
	return false
}

// same compares in a time that depends on neither text.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
