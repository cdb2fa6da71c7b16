package page

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
)

// served is a page behind a listener.
func served(t *testing.T) (*Page, string) {
	t.Helper()
	p := New(Options{})
	s := httptest.NewServer(p)
	p.options.Listen = s.Listener.Addr().(*net.TCPAddr)
	t.Cleanup(s.Close)
	return p, s.URL
}

// stream is an open event stream.
type stream struct {
	t     *testing.T
	lines *bufio.Reader
	body  io.ReadCloser
}

func events(t *testing.T, url string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", url+"/api/events", nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	require.Equal(t, 200, answer.StatusCode)
	require.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	return &stream{t, bufio.NewReaderSize(answer.Body, 1<<20), answer.Body}
}

// next returns the next event.
func (s *stream) next() (name, data string) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		require.NoError(s.t, err)
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "event: "); ok {
			name = text
		} else if text, ok := strings.CutPrefix(line, "data: "); ok {
			data = text
		} else {
			return name, data
		}
	}
}

func (s *stream) sees(name, part string) {
	s.t.Helper()
	got, data := s.next()
	require.Equal(s.t, name, got, data)
	require.Contains(s.t, data, part)
}

func TestAnEventHasTheStateOnlyIfItHasChanged(t *testing.T) {
	p, url := served(t)
	s := events(t, url)
	s.sees("none", "{}")
	p.Show(hold("/a", "first"))
	s.sees("state", "first")
	older := hold("/a", "first")
	older.Objects[0].Entries[0].For += survey.Millis(time.Second)
	older.Objects[0].Entries[0].Ratio++
	older.Outage = "the servers do not answer"
	p.Show(older)
	s.sees("beat", `"outage":"the servers do not answer"`)
	require.Equal(t, survey.Millis(time.Minute+time.Second), older.Objects[0].Entries[0].For, "the view is the survey's")
	p.Show(hold("/a", "second"))
	s.sees("state", "second")
	events(t, url).sees("state", "second")
}

func TestASlowViewerDelaysNoneAndMissesWhatWasBetween(t *testing.T) {
	p, url := served(t)
	p.writing = time.Minute // the machine may be slow, too
	p.Show(hold("/a", "first"))
	slow, quick := events(t, url), events(t, url)
	slow.sees("state", "first")
	quick.sees("state", "first")
	large := strings.Repeat("x", 1<<19)
	for range 40 { // more than the buffers of a connection take, in few rounds
		large += "x"
		p.Show(hold("/a", large))
		name, data := quick.next()
		require.Equal(t, "state", name)
		require.Contains(t, data, large)
	}
	p.Show(hold("/a", "last"))
	quick.sees("state", "last")
	seen := 0
	for {
		name, data := slow.next()
		require.Equal(t, "state", name)
		if strings.Contains(data, `"last"`) {
			break
		}
		seen++
	}
	require.Less(t, seen, 40)
}

func TestThereAreAtMostAHundredStreams(t *testing.T) {
	p, url := served(t)
	p.Show(hold("/a", ""))
	first := events(t, url)
	first.sees("state", "/a")
	for range maxStreams - 1 {
		events(t, url).sees("state", "/a")
	}
	full, err := http.Get(url + "/api/events")
	require.NoError(t, err)
	defer full.Body.Close()
	require.Equal(t, 503, full.StatusCode)
	require.NoError(t, first.body.Close())
	require.Eventually(t, func() bool { return len(p.streams) < maxStreams }, time.Minute, time.Millisecond)
	events(t, url).sees("state", "/a")
}
