//go:build unix

package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// startUI starts the command, and returns the address that it prints.
func startUI(t *testing.T, s *server, args ...string) (*program, string) {
	t.Helper()
	p := start(t, append([]string{"ui", "--servers", s.addr}, args...)...)
	p.prints("\n")
	address := regexp.MustCompile(`^the page is at (http://\S+)\n$`).FindStringSubmatch(p.stdout.String())
	require.NotNil(t, address, p.stdout.String())
	return p, address[1]
}

// get returns the code and the body.
func get(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	r, err := c.Get(address)
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(body)
}

// shows waits until the state of the page has all texts, and returns it.
func shows(t *testing.T, address string, texts ...string) (state string) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, state = get(t, http.DefaultClient, address+"api/state")
		for _, text := range texts {
			if !strings.Contains(state, text) {
				return false
			}
		}
		return true
	}, patience, pause, "%q", texts)
	return state
}

func TestUIShowsHoldersAndRemovesOneIfThatIsAllowed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	h := holder(t, s, "/locks/a")
	_, readOnly := startUI(t, s)
	p, address := startUI(t, s, "/locks", "--allow-release")
	shows(t, readOnly, `"path":"/locks/a"`, `"mode":"standalone"`, `"release":false`)
	state := shows(t, address, `"path":"/locks/a"`, `"root":"/locks"`, `"release":true`, `"command":"menagerie release --servers `+s.addr+`"`)
	_, page := get(t, http.DefaultClient, address)
	require.Contains(t, page, "/locks/a")

	of := func(name string) string {
		return regexp.MustCompile(`"` + name + `":"([^"]*)"`).FindStringSubmatch(state)[1]
	}
	release := func(address string) int {
		body := `{"path":"/locks/a","node":"` + of("node") + `","token":"` + of("token") + `","reason":"it hangs"}`
		r, err := http.NewRequest("POST", address+"api/release", strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Menagerie", "1")
		r.Header.Set("Origin", strings.TrimSuffix(address, "/"))
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	require.Equal(t, http.StatusForbidden, release(readOnly))
	require.Equal(t, 1, s.ChildCount("/locks/a"))
	require.Equal(t, http.StatusOK, release(address))
	require.Equal(t, exitLost, h.wait())
	require.Contains(t, h.stderr.String(), "it hangs")
	require.Equal(t, http.StatusConflict, release(address), "it is gone")

	thaw := s.Freeze()
	shows(t, address, `"outage":"the servers do not answer"`)
	require.Equal(t, http.StatusServiceUnavailable, release(address))
	thaw()
	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.wait())
}

func TestUIForOtherMachinesNeedsAToken(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, listen := range []string{"0.0.0.0:0", ":0"} {
		run(t, "ui", "--servers", s.addr, "--listen", listen).failed(exitUsage, "give --token TOKEN")
	}
	p, address := startUI(t, s, "--listen", "0.0.0.0:0", "--token", "s3 cret", "-vv")
	require.Contains(t, address, "http://127.0.0.1:")
	require.Contains(t, address, "/?token=s3+cret")
	bare := strings.TrimSuffix(address, "?token=s3+cret")
	code, body := get(t, http.DefaultClient, bare)
	require.Equal(t, http.StatusUnauthorized, code)
	require.Contains(t, body, "this page needs a token")

	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	viewer := &http.Client{Jar: jar}
	code, body = get(t, viewer, address)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "<title>menagerie</title>")
	code, _ = get(t, viewer, bare+"page.js")
	require.Equal(t, http.StatusOK, code)
	u, err := url.Parse(bare)
	require.NoError(t, err)
	require.Len(t, jar.Cookies(u), 1)
	p.signal(syscall.SIGINT)
	require.Equal(t, 0, p.wait())
	require.NotContains(t, p.stderr.String(), "cret")
}

func TestUISaysWhyItCannotServe(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	run(t, "ui", "--servers", s.addr, "--listen", s.addr).failed(exitFailure, "the port is in use", "--listen")
	run(t, "ui", "--servers", s.addr, "--listen", "nonsense").failed(exitUsage, "want HOST:PORT")
	run(t, "ui", "--servers", s.addr, "--token", "").failed(exitUsage, "--token is empty")
	run(t, "ui", "locks").failed(exitUsage, "does not start with a slash")
	run(t, "ui", "--servers", nobody(t), "--connect-timeout", "1s").failed(exitFailure, "within 1s")
}
