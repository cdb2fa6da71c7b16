package pagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait. It is only ever waited out by a failure.
const patience = time.Minute

// attack is a name that a page must show as text.
const attack = `<img src=x onerror=alert(1)>`

// window is a browser with one page.
type window struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string // of the console, of scripts, of dialogs
	requests   []string // addresses
}

// open starts the browser.
func open(t *testing.T, width, height int64) *window {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WSURLReadTimeout(patience), chromedp.WindowSize(int(width), int(height)))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, opts...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	w := &window{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, w.hear))
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	require.NoError(t, err)
	w.do(chromedp.EmulateViewport(width, height))
	return w
}

// browser is the path of the program. Where tests may not be skipped a machine without it fails.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "there is no Chromium; as root on Debian or Ubuntu run: apt-get install -y --no-install-recommends chromium"
	require.Empty(t, os.Getenv("CI"), missing)
	t.Skip(missing)
	return ""
}

func (w *window) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		w.complaints = append(w.complaints, fmt.Sprintf("console %s: %v", e.Type, e.Args))
	case *runtime.EventExceptionThrown:
		w.complaints = append(w.complaints, fmt.Sprintf("%s %+v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		w.complaints = append(w.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
	case *page.EventJavascriptDialogOpening:
		w.complaints = append(w.complaints, "dialog: "+e.Message)
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, e.Request.URL)
	}
}

func (w *window) do(actions ...chromedp.Action[chromedp.Void]) {
	w.t.Helper()
	require.NoError(w.t, chromedp.Do(w.ctx, actions...))
}

// quiet checks that nothing has complained, and that every request was one to the page's own origin.
func (w *window) quiet(origin string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Empty(w.t, w.complaints)
	require.NotEmpty(w.t, w.requests)
	for _, to := range w.requests {
		require.True(w.t, strings.HasPrefix(to, origin) || strings.HasPrefix(to, "data:"), to)
	}
}

// value is that of an expression in the page.
func value[T any](w *window, expression string) T {
	w.t.Helper()
	v, err := chromedp.Run(w.ctx, chromedp.Evaluate[T](expression))
	require.NoError(w.t, err, expression)
	return v
}

// run runs a statement in the page.
func (w *window) run(statement string) {
	w.t.Helper()
	w.do(chromedp.Evaluate[chromedp.Void](statement))
}

// until waits until an expression in the page is true.
func (w *window) until(expression string) error {
	return chromedp.Do(w.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(30*time.Millisecond), chromedp.WithPollingTimeout(patience/3)))
}

// text is what a reader sees in an element.
func (w *window) text(selector string) string {
	w.t.Helper()
	return value[string](w, fmt.Sprintf("document.querySelector(%s).innerText", js(selector)))
}

// js is a text as a literal of JavaScript.
func js(text string) string {
	literal, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(literal)
}

// shows waits until all texts stand in an element.
func (w *window) shows(selector string, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		err := w.until(fmt.Sprintf("document.querySelector(%s)?.innerText.includes(%s)", js(selector), js(text)))
		require.NoError(w.t, err, "%q is not in %s: %s", text, selector, w.text(selector))
	}
}

// press presses keys as a user does, wherever the focus is.
func (w *window) press(keys string) {
	w.t.Helper()
	w.do(chromedp.KeyEvent(keys))
}

// fits checks that a page of this width needs no scrolling to the side.
func (w *window) fits(width int64) {
	w.t.Helper()
	w.do(chromedp.EmulateViewport(width, 800))
	require.LessOrEqual(w.t, value[int64](w, "document.documentElement.scrollWidth"), width)
}
