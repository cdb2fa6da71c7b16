package top

import (
	"path"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/survey"
	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/tree"
)

// Model is the program on the terminal.
type Model struct {
	State
	Root func(string) // is called to have the views of another path
	// Interrupted reports that Ctrl-C ended it, and not q.
	Interrupted bool

	root          string // of the views
	view, newest  *survey.View
	width, height int
}

// New is a model of the views of root.
func New(root string, flags []string, another func(string)) *Model {
	return &Model{State: State{Dir: root, Flags: flags, Palette: Mono}, Root: another, root: root, width: 80, height: 24}
}

// Note is a message about the connection, a line of text.
type Note string

type tick struct{}

func second() tea.Cmd { return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} }) }

// Init begins to count seconds, because the frame shows ages.
func (m *Model) Init() tea.Cmd { return second() }

// Update takes in a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		return m, second()
	case *survey.View:
		if msg.Root == m.root { // not one of a path that was left meanwhile
			m.newest = msg
		}
		if !m.Paused {
			m.view = m.newest
		}
	case Note:
		m.Note, m.NoteAt = string(msg), time.Now()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.ColorProfileMsg:
		m.Palette = Mono
		if msg.Profile > colorprofile.ASCII {
			m.Palette = Colours
		}
	case tea.PasteMsg:
		if m.Editing {
			m.Filter += tree.Clean(msg.Content)
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// View is the frame of now.
func (m *Model) View() tea.View {
	v := tea.NewView(Frame(m.view, m.State, m.width, m.height, time.Now()))
	v.AltScreen = true
	return v
}

// press does what a key says.
func (m *Model) press(key tea.KeyPressMsg) tea.Cmd {
	switch name := key.String(); {
	case name == "ctrl+c":
		m.Interrupted = true
		return tea.Quit
	case name == "ctrl+z":
		return tea.Suspend
	case m.Editing:
		m.edit(name, key.Text)
	case m.Help:
		m.Help = false
	case name == "q":
		return tea.Quit
	default:
		m.command(name)
	}
	return nil
}

// edit changes the filter.
func (m *Model) edit(name, text string) {
	switch name {
	case "enter":
		m.Editing = false
	case "esc":
		m.Editing, m.Filter = false, ""
	case "backspace":
		if r := []rune(m.Filter); len(r) > 0 {
			m.Filter = string(r[:len(r)-1])
		}
	default:
		m.Filter += tree.Clean(text)
	}
}

func (m *Model) command(name string) {
	rows := m.rows(m.view)
	if len(rows) > 0 {
		m.Selected = rows[m.selected(rows)].Path // until then the first row is selected, whatever it is
	}
	switch name {
	case "s":
		m.Order = m.Order.next()
	case "r":
		m.Reverse = !m.Reverse
	case "/":
		m.Editing = true
	case "esc":
		m.Filter = ""
	case "p":
		m.Paused = !m.Paused
		m.view = m.newest
	case "?":
		m.Help = true
	case "enter", "right":
		m.descend(rows)
	case "backspace", "left":
		m.enter(path.Dir(m.Dir))
	default:
		m.move(rows, name)
	}
}

// move selects another row.
func (m *Model) move(rows []row, name string) {
	page := max(1, m.height/3)
	steps := map[string]int{"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -page, "pgdown": page, "home": -len(rows), "end": len(rows)}
	if step, ok := steps[name]; ok && len(rows) > 0 {
		m.Selected = rows[min(max(m.selected(rows)+step, 0), len(rows)-1)].Path
	}
}

// descend shows only the directory of the selected row, or what is below the row itself if that is shown.
func (m *Model) descend(rows []row) {
	if len(rows) == 0 {
		return
	}
	dir := path.Dir(m.Selected)
	if dir == m.Dir || !within(dir, m.Dir) {
		dir = m.Selected
		if !slices.ContainsFunc(rows, func(r row) bool { return strings.HasPrefix(r.Path, dir+"/") }) {
			return
		}
	}
	m.enter(dir)
}

// enter shows another directory. Views of it are asked for if it is above the path that is looked at, or if a view of all has no room for it.
func (m *Model) enter(dir string) {
	if dir == m.Dir {
		return
	}
	m.Dir = dir
	if within(dir, m.root) && (m.view == nil || m.view.Left == 0) {
		return
	}
	m.root, m.view, m.newest, m.Paused = dir, nil, nil, false
	m.Root(dir)
}
