//go:build unix

package pagetest

import (
	"cmp"
	"encoding/base64"
	"html/template"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zksync"
)

// panel is one picture of the tour: a command line, with what it prints or shows in a browser.
type panel struct {
	Title, Command, Text string
	Wide                 bool
	Image                template.URL
}

var tour = template.Must(template.New("tour").Parse(`<!DOCTYPE html><meta charset="utf-8"><title>menagerie</title><style>
body { margin: 0; padding: 24px; width: 1232px; display: grid; grid-template-columns: 1fr 1fr; gap: 20px; background: #e8edf2; font: 15px/1.4 system-ui, sans-serif; }
section { background: #16202b; border-radius: 8px; overflow: hidden; color: #dbe4ee; }
section.wide { grid-column: 1 / 3; }
h2 { margin: 0; padding: 8px 14px; font-size: 15px; background: #263445; color: #fff; }
pre { margin: 0; padding: 12px 14px; font: 11.5px/1.45 "DejaVu Sans Mono", monospace; white-space: pre-wrap; }
pre b { color: #8fd19e; font-weight: normal; }
img { display: block; width: 100%; }
</style>{{range .}}<section{{if .Wide}} class="wide"{{end}}><h2>{{.Title}}</h2><pre><b>$ {{.Command}}</b>
{{.Text}}</pre>{{if .Image}}<img src="{{.Image}}" alt="">{{end}}</section>{{end}}`))

// TestTheTour makes the pictures of README: the demo, and the tour. They stay if MENAGERIE_SCREENSHOTS names a folder for them.
func TestTheTour(t *testing.T) {
	t.Parallel()
	dir := cmp.Or(os.Getenv("MENAGERIE_SCREENSHOTS"), t.TempDir())
	require.NotEmpty(t, browser(t)) // before anything is built
	n := newNight(t)
	prints := func(title, command string) panel {
		cmd := exec.Command(n.binary, strings.Fields(command)[1:]...)
		cmd.Env = append(os.Environ(), "MENAGERIE_SERVERS="+n.srv.Addr())
		if strings.Contains(command, "demo") {
			cmd.Env = os.Environ()
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		var lines []string
		for line := range strings.Lines(string(out)) {
			if line = strings.TrimRight(line, " \n"); len(lines) < 24 {
				lines = append(lines, line)
			}
		}
		return panel{Title: title, Command: command, Text: strings.Join(lines, "\n")}
	}
	demo := prints("A process dies, and the lock goes on", "menagerie demo --kill")
	usual := n.srv.Session(t, zksync.WithName("backup"))
	for _, path := range []string{"/locks/backup", "/locks/report"} {
		_, err := zksync.NewMutex(usual, path).LockContext(t.Context())
		require.NoError(t, err)
	}
	for range 2 {
		waiter := n.srv.Session(t, zksync.WithName("invoices"))
		go func() { _, _ = zksync.NewMutex(waiter, "/locks/backup").LockContext(t.Context()) }()
	}
	n.deadlock("/locks/orders", "/locks/stock")
	n.srv.Wait(t, "all wait", func() bool {
		return len(n.srv.Children("/locks/backup")) == 3 && len(n.srv.Children("/locks/orders")) == 2 && len(n.srv.Children("/locks/stock")) == 2
	})
	require.Contains(t, demo.Text, "right: nothing was lost")
	panels := []panel{demo, prints("Who holds, who waits", "menagerie ls /locks/backup"), prints("All locks, live", "menagerie top /locks")}
	panels[2].Wide = true
	require.Contains(t, panels[1].Text, "held")
	require.Contains(t, panels[2].Text, "1 deadlock: ")

	ui := n.start("the page is at ", "ui", "/locks")
	w := open(t, 1280, 1240)
	w.do(chromedp.Navigate(regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(ui.printed())))
	w.shows("#status", "live")
	w.shows("#wrong", "1 deadlock")
	w.run("choose('/locks/orders')")
	w.shows("#graph", "Deadlock: ")
	data, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	panels = append(panels, panel{Title: "The same in a browser", Wide: true, Command: "menagerie ui /locks", Text: strings.TrimSpace(ui.printed()),
		Image: template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(data))})

	photograph(w, filepath.Join(dir, "tour.png"), panels...)
	demo.Wide = true
	photograph(w, filepath.Join(dir, "demo.png"), demo)
}

// photograph writes a picture of panels.
func photograph(w *window, file string, panels ...panel) {
	t := w.t
	t.Helper()
	page, err := os.Create(filepath.Join(t.TempDir(), "tour.html"))
	require.NoError(t, err)
	defer page.Close()
	require.NoError(t, tour.Execute(page, panels))
	w.do(chromedp.EmulateViewport(1280, 100), chromedp.Navigate("file://"+page.Name()))
	w.do(chromedp.EmulateViewport(1280, value[int64](w, "document.documentElement.scrollHeight")))
	picture, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.Less(t, len(picture), 500_000)
	require.NoError(t, os.WriteFile(file, picture, 0o644))
}
