package pagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/page"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
)

// serve serves a page, and returns its address.
func serve(t *testing.T, o page.Options) (*page.Page, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o.Listen = l.Addr().(*net.TCPAddr)
	p := page.New(o)
	server := &http.Server{Handler: p}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // it is closed below
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return p, "http://" + l.Addr().String() + "/"
}

// screen shows a view again and again, as a survey does.
type screen struct {
	newest atomic.Pointer[survey.View]
	page   *page.Page
}

func (s *screen) show(v *survey.View) {
	s.newest.Store(v)
	s.again()
}

func (s *screen) again() {
	v := *s.newest.Load()
	v.At = time.Now()
	s.page.Show(&v)
}

// onScreen shows v until the test ends, or another view.
func onScreen(t *testing.T, p *page.Page, v *survey.View) *screen {
	s := &screen{page: p}
	s.show(v)
	ended, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-time.After(2 * time.Second):
				s.again()
			case <-over:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-ended
	})
	return s
}

// view is one of the JSON of a View: locks, each with a holder and some waiters. The first holder has this name.
func view(t *testing.T, locks int, name string, waiters int) *survey.View {
	t.Helper()
	var objects []string
	for i := range locks {
		if i > 0 {
			name = "b"
		}
		path := fmt.Sprintf("/crowd/%04d", i)
		var entries []string
		for n := range waiters + 1 {
			state, ahead := "waiting", fmt.Sprintf("%s/n%d", path, n-1)
			if n == 0 {
				state, ahead = "held", ""
			}
			entries = append(entries, fmt.Sprintf(`{"position":%d,"kind":"lock","state":%q,"owner":{"host":"web-%d","pid":%d,"name":%s},"since":%q,`+
				`"session":"0x%x","token":"t%d","node":"%s/n%d","forMs":1000,"ahead":%q,"behind":"web-%d"}`, n, state, n, i+100, js(name),
				time.Now().Add(-time.Minute).Format(time.RFC3339), i*10000+n+1, n, path, n, ahead, n-1))
		}
		objects = append(objects, fmt.Sprintf(`{"path":%q,"kind":"lock","state":"held","entries":[%s],"usual":{"holds":3,"medianMs":1000,"p99Ms":2000,`+
			`"counts":[{"upToMs":1000,"holds":2},{"upToMs":2000,"holds":1}]}}`, path, strings.Join(entries, ",")))
	}
	v := &survey.View{Cycles: []survey.Cycle{}}
	require.NoError(t, json.Unmarshal([]byte(`{"root":"/","objects":[`+strings.Join(objects, ",")+`]}`), v))
	return v
}

func TestTwoThousandPathsAreListedAsFarAsTheyAreSeen(t *testing.T) {
	t.Parallel()
	w := open(t, 1280, 900)
	p, address := serve(t, page.Options{Command: "menagerie release"})
	long := view(t, 2000, strings.Repeat("long ", 13_000), 1)
	long.Objects[1].Path += strings.Repeat("/deep", 13_000)
	s := onScreen(t, p, long)
	w.do(chromedp.Navigate(address))
	w.shows("#count", "2000 paths")
	require.Less(t, value[int64](w, "document.querySelectorAll('.row').length"), int64(60))
	require.Less(t, value[int64](w, "document.querySelectorAll('*').length"), int64(3000))
	began := time.Now()
	s.show(view(t, 2000, "b", 1))
	require.NoError(t, w.until("now.objects[0].entries[0].owner.name === 'b'"))
	require.Less(t, time.Since(began), 10*time.Second)
	choosesByKeys(t, w)
	w.fits(360)
	w.run("choose('')")
	w.fits(360)
	w.quiet(address)
}

func choosesByKeys(t *testing.T, w *window) {
	t.Helper()
	w.press("/")
	w.press("1234")
	w.shows("#count", "1 of 2000 paths")
	w.press(kb.Enter)
	w.shows("#title", "/crowd/1234")
	require.Equal(t, "title", value[string](w, "document.activeElement.id"))
	w.shows("#holds", "web-0 pid 1334", "far longer than usual: 6", "median 1.0 s", "p99 2.0 s, of 3 holds", "up to 1.0 s", "this hold")
	w.shows("#waits", "web-1 pid 1334")
	w.shows("#do", "menagerie release /crowd/1234 --node n0")
	w.press(kb.Escape)
	w.shows("#count", "2000 paths")
	w.press(kb.Escape)
	w.shows("#title", "Everything")
	w.press("j")
	w.press(kb.ArrowDown)
	w.shows("#title", "/crowd/0001")
	w.press("k")
	w.shows("#title", "/crowd/0000")
	w.press("?")
	w.shows("#help", "filter the paths")
	w.press(kb.Escape)
	require.False(t, value[bool](w, "document.getElementById('help').open"))
	w.press("t")
	w.press("t")
	require.Equal(t, "dark", value[string](w, "document.documentElement.dataset.theme"))
}

func TestAReleaseRemovesOnlyWhatIsShown(t *testing.T) {
	t.Parallel()
	w := open(t, 1000, 900)
	orders := make(chan page.Order, 1)
	p, address := serve(t, page.Options{Release: func(_ context.Context, o page.Order) (bool, error) {
		orders <- o
		return true, nil
	}})
	v := view(t, 1, attack, 2)
	s := onScreen(t, p, v)
	w.do(chromedp.Navigate(address))
	ask := func() { w.run("document.querySelector('#holds button.act').click()") }
	w.shows("#holds", "Release")
	ask()
	w.shows("#ask", "web-0 pid 100 holds /crowd/0000 since ", "Then web-1 pid 100 is granted", "name "+attack)
	w.press(kb.Escape)
	require.Empty(t, orders)
	ask()
	w.press(`a "reason"`) // the focus is there
	w.run("document.getElementById('ask-yes').click()")
	w.shows("#ask-result", "Removed. Its process has read the reason.")
	require.Equal(t, page.Order{Path: "/crowd/0000", Node: "/crowd/0000/n0", Token: "t0", State: "held", Reason: `a "reason"`}, <-orders)
	w.run("document.getElementById('ask-no').click()")

	ask()
	gone := view(t, 1, "b", 2)
	gone.Objects[0].Entries[0].Token = "t9"
	s.show(gone)
	w.shows("#ask-result", "nothing to release")
	require.True(t, value[bool](w, "document.getElementById('ask-yes').disabled"))
	w.press(kb.Escape)
	late := *v
	late.Outage, late.Missing = "the servers do not answer", true
	s.show(&late)
	w.shows("#wrong", "The view is old: ", "/ does not exist")
	w.shows("#alert", "Actions are off.")
	require.True(t, value[bool](w, "document.querySelector('#holds button.act').disabled"))
	require.Empty(t, orders)
	w.quiet(address)
}
