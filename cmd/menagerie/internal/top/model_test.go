package top

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
)

// keyboard is a model, and the paths whose views it has asked for.
type keyboard struct {
	*Model
	roots []string
}

func typing(v *survey.View, dir string) *keyboard {
	k := new(keyboard)
	k.Model = New(dir, nil, func(root string) { k.roots = append(k.roots, root) })
	k.Update(v)
	return k
}

var named = map[string]rune{"up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
	"enter": tea.KeyEnter, "right": tea.KeyRight, "left": tea.KeyLeft, "backspace": tea.KeyBackspace, "esc": tea.KeyEscape}

// press presses keys, of which the last one returns a command.
func (k *keyboard) press(keys ...string) (cmd tea.Cmd) {
	for _, name := range keys {
		switch code, ok := named[name]; {
		case ok:
			_, cmd = k.Update(tea.KeyPressMsg{Code: code})
		case strings.HasPrefix(name, "ctrl+"):
			_, cmd = k.Update(tea.KeyPressMsg{Code: rune(name[5]), Mod: tea.ModCtrl})
		default:
			_, cmd = k.Update(tea.KeyPressMsg{Code: rune(name[0]), Text: name})
		}
	}
	return cmd
}

// paths are the rows, the selected one in brackets.
func (k *keyboard) paths() string {
	rows := k.rows(k.view)
	var all []string
	for i, r := range rows {
		if i == k.selected(rows) {
			all = append(all, "["+r.Path+"]")
			continue
		}
		all = append(all, r.Path)
	}
	return strings.Join(all, " ")
}

func deep() *survey.View {
	return scene(lock("/a/b/c", waits("x", 1, time.Second)), lock("/a/b/c/d"), lock("/a/b/e", holds("x", 2, time.Second)), lock("/f", holds("y", 3, time.Minute)))
}

func TestTheSelectionStaysOnItsPathWhenTheOrderChanges(t *testing.T) {
	k := typing(deep(), "/")
	require.Equal(t, "[/a/b/c] /f /a/b/e /a/b/c/d", k.paths())
	k.press("s")
	require.Equal(t, "/f /a/b/e [/a/b/c] /a/b/c/d", k.paths())
	k.press("r")
	require.Equal(t, "[/a/b/c] /a/b/c/d /a/b/e /f", k.paths())
	k.press("j", "down")
	require.Equal(t, "/a/b/c /a/b/c/d [/a/b/e] /f", k.paths())
	k.press("pgdown")
	require.Equal(t, "/a/b/c /a/b/c/d /a/b/e [/f]", k.paths())
	k.press("k", "up", "pgup")
	require.Equal(t, "[/a/b/c] /a/b/c/d /a/b/e /f", k.paths())
	k.press("end", "r", "s", "s", "s", "s")
	require.Equal(t, ByPath, k.Order)
	require.Equal(t, "/a/b/c /a/b/c/d /a/b/e [/f]", k.paths())
	k.Update(scene(lock("/b"), lock("/f")))
	require.Equal(t, "/b [/f]", k.paths())
	k.press("home", "s")
	require.Equal(t, ByWaiters, k.Order)
}

func TestIntoADirectoryAndUpAgain(t *testing.T) {
	k := typing(deep(), "/")
	k.press("enter")
	require.Equal(t, "/a/b", k.Dir)
	require.Equal(t, "[/a/b/c] /a/b/e /a/b/c/d", k.paths())
	k.press("right")
	require.Equal(t, "/a/b/c", k.Dir, "there is more below it")
	require.Equal(t, "[/a/b/c] /a/b/c/d", k.paths())
	k.press("end", "enter")
	require.Equal(t, "/a/b/c", k.Dir, "there is nothing below it")
	k.press("left", "left")
	require.Equal(t, "/a", k.Dir)
	k.press("backspace", "backspace")
	require.Equal(t, "/", k.Dir)
	require.Empty(t, k.roots, "the views of / have it all")
}

func TestAboveThePathOfTheViewsThereAreOthers(t *testing.T) {
	v := deep()
	v.Root = "/a/b"
	k := typing(v, "/a/b")
	k.press("left")
	require.Equal(t, []string{"/a"}, k.roots)
	require.Contains(t, ansi.Strip(k.View().Content), "reading /a ...")
	k.Update(v)
	require.Contains(t, ansi.Strip(k.View().Content), "reading /a ...", "a late view of the old path")
	v = deep()
	v.Root, v.Left = "/a", 1
	k.Update(v)
	require.Equal(t, "[/a/b/c] /a/b/e /a/b/c/d", k.paths())
	k.press("enter")
	require.Equal(t, []string{"/a", "/a/b"}, k.roots, "a view of it may have room for all")
}

func TestFilterKeys(t *testing.T) {
	k := typing(deep(), "/")
	require.Nil(t, k.press("/", "q", "Y", "backspace", "backspace", "Y"))
	require.Equal(t, "[/f]", k.paths(), "the host")
	k.Update(tea.PasteMsg{Content: "\x1b[2J"})
	require.Equal(t, "Y?[2J", k.Filter)
	k.press("esc")
	require.Empty(t, k.Filter)
	k.press("/", "e", "enter", "s")
	require.Equal(t, "[/a/b/e]", k.paths())
	require.Equal(t, ByHeld, k.Order)
	k.press("esc")
	require.Equal(t, "/f [/a/b/e] /a/b/c /a/b/c/d", k.paths())
}

func TestPauseKeepsTheView(t *testing.T) {
	k := typing(deep(), "/")
	k.press("p")
	k.Update(scene())
	require.Equal(t, "[/a/b/c] /f /a/b/e /a/b/c/d", k.paths())
	k.press("p")
	require.Empty(t, k.paths())
}

func TestQuitting(t *testing.T) {
	k := typing(deep(), "/")
	k.press("?")
	require.Contains(t, ansi.Strip(k.View().Content), "this help")
	require.Nil(t, k.press("q"), "any key ends the help")
	require.Equal(t, tea.QuitMsg{}, k.press("q")())
	require.False(t, k.Interrupted)
	require.Equal(t, tea.SuspendMsg{}, k.press("ctrl+z")())
	k.press("/")
	require.Equal(t, tea.QuitMsg{}, k.press("ctrl+c")())
	require.True(t, k.Interrupted)
}

func TestColours(t *testing.T) {
	v := busy()
	v.At, v.Outage = now.Add(-12*time.Second), "the servers do not answer"
	const age = "as of 12 s ago; the servers do not answer\x1b[m"
	frame := func(p Palette) string {
		return Frame(v, State{Dir: "/", Palette: p, Selected: "/locks/a"}, 120, 24, now)
	}
	require.Contains(t, frame(Colours), "\x1b[1;31m"+age)
	require.Contains(t, frame(Mono), "\x1b[7m"+age)
	require.NotContains(t, frame(Bare), "\x1b")
	require.Regexp(t, `\x1b\[1;31m +/locks/nightly`, frame(Colours), "38 times the median")
	require.Regexp(t, `\x1b\[33m +/locks/report`, frame(Colours), "longer than p99")
	require.Regexp(t, `\x1b\[7m>  /locks/a .{90,}\x1b\[m`, frame(Mono))
	k := typing(v, "/")
	k.Update(tea.ColorProfileMsg{Profile: colorprofile.ASCII})
	require.Equal(t, Mono, k.Palette)
	k.Update(tea.ColorProfileMsg{Profile: colorprofile.ANSI})
	require.Equal(t, Colours, k.Palette)
}

// Whatever is shown, in whatever size.
func TestNoFrameIsLargerThanItsTerminal(t *testing.T) {
	name := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("a/锁é\x1b\u200f\u200d🔒\n")), rapid.Rune()))
	rapid.Check(t, func(r *rapid.T) {
		var all []*survey.Object
		for range rapid.IntRange(0, 8).Draw(r, "locks") {
			var entries []*survey.Entry
			for i := range rapid.IntRange(0, 4).Draw(r, "entries") {
				e := holds(name.Draw(r, "host"), i, time.Minute)
				if i > 0 {
					e = waits(name.Draw(r, "host"), i, time.Hour)
				}
				e.Dead, e.Heard, e.Stuck, e.ID, e.Owner.Name = rapid.Bool().Draw(r, "dead"), name.Draw(r, "heard"), rapid.Bool().Draw(r, "stuck"), name.Draw(r, "id"), name.Draw(r, "name")
				entries = append(entries, e)
			}
			all = append(all, usually(lock("/"+name.Draw(r, "path"), entries...), time.Second, time.Second, 3))
		}
		v := scene(all...)
		v.Cycles, v.Denied = []survey.Cycle{{Text: name.Draw(r, "cycle")}}, []string{name.Draw(r, "denied")}
		s := State{Dir: "/" + name.Draw(r, "dir"), Filter: rapid.SampledFrom([]string{"", "a"}).Draw(r, "filter"), Help: rapid.IntRange(0, 9).Draw(r, "help") == 0,
			Palette: Palette(rapid.IntRange(0, 2).Draw(r, "palette")), Note: name.Draw(r, "note"), NoteAt: now}
		if rapid.Bool().Draw(r, "all") {
			s.Dir = "/"
		}
		width, height := rapid.IntRange(1, 140).Draw(r, "width"), rapid.IntRange(1, 40).Draw(r, "height")
		lines := strings.Split(Frame(v, s, width, height, now), "\n")
		require.LessOrEqual(r, len(lines), height)
		for _, line := range lines {
			require.LessOrEqual(r, ansi.StringWidth(line), width, "%q", line)
			require.Equal(r, ansi.Strip(line), tree.Clean(ansi.Strip(line)))
		}
	})
}
