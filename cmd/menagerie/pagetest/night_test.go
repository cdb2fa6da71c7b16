//go:build unix

package pagetest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
	"github.com/go-menagerie/menagerie/zktest"
)

// night is a server, and the programs that use it.
type night struct {
	t      *testing.T
	srv    *zktest.Server
	binary string
}

func newNight(t *testing.T) *night {
	binary, err := build()
	require.NoError(t, err)
	return &night{t: t, srv: zktest.Run(t, zktest.WithLeftovers(), zktest.WithTimeoutLimits(100*time.Millisecond, time.Minute)), binary: binary}
}

// build builds the command once.
var build = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(built, "menagerie")
	out, err := exec.Command("go", "build", "-o", binary, "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

// built is the folder of the binary.
var built string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "menagerie-page-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(built)
		return m.Run()
	}())
}

// program is one that runs until the test ends.
type program struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	mu    sync.Mutex
	out   bytes.Buffer
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// start starts the binary, and returns when it has printed ready.
func (n *night) start(ready string, args ...string) *program {
	n.t.Helper()
	p := &program{cmd: exec.Command(n.binary, args...)}
	p.cmd.Env = append(os.Environ(), "MENAGERIE_SERVERS="+n.srv.Addr())
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = p, p, time.Second
	var err error
	p.stdin, err = p.cmd.StdinPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, p.cmd.Start())
	n.t.Cleanup(func() {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it ends CMD, too
		_ = p.cmd.Wait()
	})
	require.Eventually(n.t, func() bool { return strings.Contains(p.printed(), ready) }, patience, 5*time.Millisecond, "%v: %s", args, lazy{p})
	return p
}

// deadlock has two owners that each hold one lock and wait for the other's. Each has two processes, one run by the other.
func (n *night) deadlock(a, b string) {
	holder := func(held, wanted string) *program {
		return n.start("holding", "lock", held, "--", "sh", "-c", "echo holding; read go; exec "+n.binary+" lock "+wanted+" -- true")
	}
	for _, p := range []*program{holder(a, b), holder(b, a)} {
		_, err := io.WriteString(p.stdin, "go\n")
		require.NoError(n.t, err)
	}
}

func TestANightWithADeadlockADeadHolderAndAnOutage(t *testing.T) {
	t.Parallel() // it mostly waits
	require.NotEmpty(t, browser(t), "before anything is built")
	n := newNight(t)
	stopped := n.start("holding", "lock", "/night/report", "--timeout", "21s", "--", "sh", "-c", "echo holding; exec sleep 600")
	n.deadlock("/night/orders", "/night/stock")
	n.hold(`/night/"'%00<b>`+attack+"\u202e\u200f", attack)
	ui := n.start("the page is at ", "ui", "/night")
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(ui.printed())
	require.NotEmpty(t, address)

	w := open(t, 1280, 1000)
	w.do(chromedp.Navigate(address))
	w.shows("#status", "live")
	n.backups(w, 3)
	// The servers are asked every 5 s, and a client counts as dead in the last third of its timeout.
	require.NoError(t, stopped.cmd.Process.Signal(syscall.SIGSTOP))

	showsTheDeadlock(t, w)
	w.shows("#dead", "holds /night/report: last heard ", "free in at most ")
	w.shows("#wrong", "probably dead")
	shoot(w)
	w.shows("#holds", attack, `/night/"'%00<b>`+attack+`\u{202e}\u{200f}`)
	require.Zero(t, value[int64](w, "document.querySelectorAll('img, b, main script').length"))

	thaw := n.srv.Freeze()
	w.shows("#alert", "The view is old: ", "Actions are off.")
	w.shows("#status", "as of ", " ago; the servers do not answer")
	w.shows("#wrong", "The view is old: ")
	thaw()
	w.shows("#status", "live")
	require.False(t, value[bool](w, "document.body.classList.contains('stale')"))
	w.quiet(address)

	showsTheStateWithoutScripts(t, w, address)
	w.do(chromedp.Navigate(address))
	w.shows("#status", "live")
	require.NoError(t, ui.cmd.Process.Signal(syscall.SIGTERM))
	w.shows("#alert", "This page has lost menagerie ui")
	w.shows("#status", "as of ", "this page has lost menagerie ui")
}

// hold holds a lock in a session with a name until the lease is given up, or the test ends.
func (n *night) hold(path, name string) *zksync.Lease {
	n.t.Helper()
	lease, err := zksync.NewMutex(n.srv.Session(n.t, zksync.WithName(name)), path).LockContext(n.t.Context())
	require.NoError(n.t, err)
	return lease
}

// backups are holds that the page sees begin and end, from which it learns what is usual, and one that does not end.
func (n *night) backups(w *window, holds int) {
	n.t.Helper()
	const held = "now.objects.some(o => o.path === '/night/backup' && o.entries.length)"
	for range holds {
		lease := n.hold("/night/backup", "nightly backup")
		require.NoError(n.t, w.until(held))
		require.NoError(n.t, lease.Unlock())
		require.NoError(n.t, w.until("!"+held))
	}
	n.hold("/night/backup", "nightly backup")
}

func showsTheDeadlock(t *testing.T, w *window) {
	t.Helper()
	w.shows("#graph", "Deadlock: ", "holds /night/orders, and under it ", "waits for /night/stock", "holds /night/stock, and under it ", "waits for /night/orders")
	w.shows("#wrong", "1 deadlock")
	w.shows("#waits", "never granted: in or behind a deadlock")
	require.Equal(t, int64(2), value[int64](w, `document.querySelectorAll("#graph path.red[d]").length`))
	require.Equal(t, int64(2), value[int64](w, `document.querySelectorAll("#graph g.red rect").length`), "two owners, though each has two processes")
	require.Contains(t, w.text("#holds"), value[string](w, `document.querySelector("#graph g.red text").textContent`), "the name of the holder")
}

func showsTheStateWithoutScripts(t *testing.T, w *window, address string) {
	t.Helper()
	scripts := func(run bool) {
		_, err := chromedp.Call(w.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !run})
		require.NoError(t, err)
	}
	scripts(false)
	w.do(chromedp.Navigate(address))
	plain := value[string](w, "document.querySelector('main.plain').innerText")
	for _, text := range []string{"/night/orders", "holds /night/stock, and under it ", attack} {
		require.Contains(t, plain, text)
	}
	scripts(true)
}

// shoot takes the pictures of docs/ui.md if MENAGERIE_SCREENSHOTS names a folder for them.
func shoot(w *window) {
	dir := os.Getenv("MENAGERIE_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture := func(name string) {
		w.do(chromedp.Sleep(300 * time.Millisecond)) // transitions
		data, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
		require.NoError(w.t, err)
		require.NoError(w.t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
		require.Less(w.t, len(data), 200_000)
	}
	picture("ui-wide.png")
	w.do(chromedp.EmulateViewport(390, 844))
	w.run("choose('/night/backup')")
	picture("ui-narrow.png")
	w.do(chromedp.EmulateViewport(1280, 1000))
	w.run("choose('/night/orders'); theme('dark')")
	picture("ui-dark.png")
	w.run("choose(''); theme('system')")
}

// lazy is what a program has printed when the text is needed.
type lazy struct{ *program }

func (l lazy) String() string { return l.printed() }
