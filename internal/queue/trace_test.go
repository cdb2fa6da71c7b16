package queue_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// A trace is a script and what came of it: blocks, with a blank line between them, of comments ("#"), commands, and
// below "----" the lines of the world (see world_test.go). "go test ./internal/queue -run Traces -rewrite" writes
// what comes out. Commit a trace that has changed only if you understand why.

var rewrite = flag.Bool("rewrite", false, "write the traces as they come out")

func TestTracesOfTheQueueAreWhatTheyWere(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				got := w.play(string(text))
				w.close()
				if *rewrite {
					require.NoError(t, os.WriteFile(f, []byte(got), 0o666))
					return
				}
				require.Equal(t, string(text), got)
			})
		})
	}
}

// play runs the blocks of a script and returns it with what came out.
func (w *world) play(script string) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(script), "\n\n") {
		head, _, _ := strings.Cut(block, "\n----")
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		out.WriteString(head + "\n")
		commands := 0
		w.begin()
		for line := range strings.SplitSeq(head, "\n") {
			if !strings.HasPrefix(line, "#") {
				commands++
				w.do(strings.Fields(line))
			}
		}
		if commands > 0 {
			out.WriteString("----\n" + w.settle())
		}
	}
	return out.String()
}

// do carries out one command. Those of one block begin at the same instant.
func (w *world) do(words []string) {
	command, words := words[0], words[1:]
	f, ok := commands[command]
	require.True(w.t, ok, "no command %q", command)
	for len(words) < 4 {
		words = append(words, "")
	}
	f(w, words)
}

var commands = map[string]func(w *world, args []string){
	// enter NAME KIND [WEIGHT | noread] has a client ask for a ticket and wait; try does not wait.
	"enter": func(w *world, a []string) { w.enter(a[0], a[1], a[2], false) },
	"try":   func(w *world, a []string) { w.enter(a[0], a[1], a[2], true) },
	// leave NAME gives the ticket up, or, if there is none yet, ends the context of the one who waits.
	"leave": func(w *world, a []string) { w.leave(a[0]) },
	// downgrade NAME puts a read entry in the place of a write entry.
	"downgrade": func(w *world, a []string) { w.downgrade(a[0]) },
	// foreign NAME KIND makes an entry of another library, of a session of its own.
	"foreign": func(w *world, a []string) { w.foreign(a[0], a[1]) },

	// crowd NAME has a client make sealed entries, and others too, once the server knows their identities.
	"crowd": func(w *world, a []string) { w.crowd(a[0]) },

	// What strangers, servers and networks do.
	"delete":     func(w *world, a []string) { w.srv.Delete(w.node(a[0])) },
	"write":      func(w *world, a []string) { w.srv.Set(w.node(a[0]), []byte("revoke")) },
	"deletedir":  func(w *world, _ []string) { w.srv.DeleteAll(dir) },
	"disconnect": func(w *world, a []string) { w.srv.Disconnect(w.client(a[0]).session()) },
	"expire":     func(w *world, a []string) { w.srv.Expire(w.client(a[0]).session()) },
	"partition":  func(w *world, a []string) { w.heal = w.srv.Partition(w.client(a[0]).session()) },
	"heal":       func(w *world, _ []string) { w.heal() },
	// rule OP NAME VERDICT is for the next request, or event, of the kind and client; release ends a hold.
	"rule":    func(w *world, a []string) { w.rule(a[0], a[1], a[2]) },
	"release": func(w *world, _ []string) { w.held.Release() },

	"capacity": func(w *world, a []string) { w.capacity = int64(number(w.t, a[0])) },
	"sequence": func(w *world, a []string) { w.srv.SetSequence(dir, int32(number(w.t, a[0]))) },
	// heartbeats has the syncs shown by which a session is proved to live.
	"heartbeats": func(w *world, _ []string) { w.heartbeats = true },
	"sleep": func(w *world, a []string) {
		d, err := time.ParseDuration(a[0])
		require.NoError(w.t, err)
		time.Sleep(d)
	},
}

// settle waits until the block's commands have had their effect, and returns what happened: by instants, then by
// clients. What one client did at one instant is in order, but for requests that it sent together.
func (w *world) settle() string {
	w.pass()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outcomes()
	lines := w.lines
	w.lines = nil
	slices.SortStableFunc(lines, func(a, b *line) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.client, b.client)) })
	for i := 1; i < len(lines); i++ {
		for j := i; j > 0 && together(lines[j-1], lines[j]) && lines[j-1].text > lines[j].text; j-- {
			lines[j-1], lines[j] = lines[j], lines[j-1]
		}
	}
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "%-7s %s%s\n", l.shown, l.client, l.text)
	}
	return out.String()
}

func together(a, b *line) bool {
	return a.at == b.at && a.client == b.client && a.op != zktest.Any && b.op != zktest.Any
}
