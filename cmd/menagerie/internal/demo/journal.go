package demo

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/zksync"
)

// event is what a line of the journal says has happened. Between two lines of one hold the process
// looks at its lease: each but lost, kill and die says that it was valid after the line before.
type event string

const (
	entered event = "enter" // the lock was granted
	wrote   event = "write" // the file has been written
	holds   event = "hold"  // in the middle of a hold
	left    event = "leave" // about to unlock
	lost    event = "lost"  // the lease is no longer valid; nothing is written under it from here on
	killed  event = "kill"  // the process was killed by the demo and is dead
	died    event = "die"   // the process was killed by somebody else and is dead
)

// entry is one line of the journal. A hold is known by the process and the token.
type entry struct {
	event  event
	worker int
	pid    int
	token  zksync.Token
}

// journal is the common history of all processes: every line is one write to the end of
// the file, which the kernel puts there whole, so the order of the lines is an order of
// the events that all agree on, without comparing clocks.
type journal struct{ f *os.File }

func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{f: f}, nil
}

func (j *journal) append(e entry) error {
	_, err := fmt.Fprintf(j.f, "%s %d %d %s\n", e.event, e.worker, e.pid, e.token)
	return err
}

func (j *journal) close() error { return j.f.Close() }

func loadJournal(path string) ([]entry, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readJournal(f)
}

// readJournal parses a whole journal.
func readJournal(r io.Reader) ([]entry, error) {
	var entries []entry
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		e, err := parseEntry(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("demo: journal line %d: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}

func parseEntry(line string) (entry, error) {
	fields := strings.Fields(line)
	if len(fields) != 4 {
		return entry{}, fmt.Errorf("%q does not have four fields", line)
	}
	worker, err := strconv.Atoi(fields[1])
	if err != nil {
		return entry{}, err
	}
	pid, err := strconv.Atoi(fields[2])
	if err != nil {
		return entry{}, err
	}
	token, err := zksync.ParseToken(fields[3])
	if err != nil {
		return entry{}, err
	}
	return entry{event: event(fields[0]), worker: worker, pid: pid, token: token}, nil
}
