package demo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/zksync"
)

// Limits of a demo. A record has to fit into one page (see counterFile).
const (
	MaxWorkers = 256
	MaxRounds  = 1_000_000
)

// record is what the file holds: the counter, the token of the hold that wrote it, and how
// many rounds each worker has done, which makes an increment happen exactly once although
// a worker may die between any two instructions.
type record struct {
	counter int
	token   zksync.Token
	rounds  []int
}

const (
	headFormat = "counter %012d token %s\n"
	slotWidth  = 8 // seven digits and a blank
)

var errTorn = errors.New("demo: the counter file is damaged: two processes wrote it at once")

func (r record) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, headFormat, r.counter, r.token)
	for _, n := range r.rounds {
		fmt.Fprintf(&b, "%07d ", n)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// decodeRecord reads what encode wrote, and nothing else.
func decodeRecord(data []byte) (record, error) {
	head, slots, ok := strings.Cut(string(data), "\n")
	fields := strings.Fields(head)
	if !ok || len(fields) != 4 {
		return record{}, errTorn
	}
	var r record
	var err error
	if r.counter, err = strconv.Atoi(fields[1]); err != nil {
		return record{}, errTorn
	}
	if r.token, err = zksync.ParseToken(fields[3]); err != nil {
		return record{}, errTorn
	}
	for _, slot := range strings.Fields(slots) {
		n, err := strconv.Atoi(slot)
		if err != nil {
			return record{}, errTorn
		}
		r.rounds = append(r.rounds, n)
	}
	if !bytes.Equal(r.encode(), data) {
		return record{}, errTorn
	}
	return r, nil
}

// counterFile is the resource that the lock protects. It has no protection of its own.
//
// A record has a fixed width and is less than a page, so one write replaces all of it, and
// a process that is killed has either written it or not: the kernel looks for a deadly
// signal between pages, not within one.
type counterFile struct {
	f    *os.File
	size int
}

func createCounter(path string, workers int) error {
	return os.WriteFile(path, record{rounds: make([]int, workers)}.encode(), 0o600)
}

func openCounter(path string, workers int) (*counterFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &counterFile{f: f, size: len(record{rounds: make([]int, workers)}.encode())}, nil
}

func (c *counterFile) read() (record, error) {
	data := make([]byte, c.size)
	if _, err := c.f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return record{}, err
	}
	return decodeRecord(data)
}

func (c *counterFile) write(r record) error {
	_, err := c.f.WriteAt(r.encode(), 0)
	return err
}

func (c *counterFile) close() error { return c.f.Close() }
