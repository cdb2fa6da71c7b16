package main

import (
	"bytes"
	"io"
	"os"
	"time"

	"github.com/go-menagerie/menagerie/cmd/menagerie/internal/child"
)

// messages are the lines on standard error. A reader that has ended or stopped must not end or delay what this
// process holds, so Write neither fails nor blocks: lines that nobody reads are dropped.
type messages struct {
	out   io.Writer
	lines chan line
}

type line struct {
	text    []byte
	written chan<- struct{} // closed when all lines before it are written
}

// unread is how many lines may wait for a reader that has stopped.
const unread = 1000

// newMessages writes to out, in a goroutine that lasts as long as the process.
func newMessages(out io.Writer) *messages {
	m := &messages{out, make(chan line, unread)}
	go func() {
		for l := range m.lines {
			if l.written != nil {
				close(l.written)
				continue
			}
			child.FromBackground(func() { _, _ = out.Write(l.text) }) // an error can be reported nowhere
		}
	}()
	return m
}

func (m *messages) Write(p []byte) (int, error) {
	select {
	case m.lines <- line{text: bytes.Clone(p)}:
	default:
	}
	return len(p), nil
}

// flush waits until all lines are written, for at most limit.
func (m *messages) flush(limit time.Duration) {
	over, written := time.After(limit), make(chan struct{})
	select {
	case m.lines <- line{written: written}:
	case <-over:
		return
	}
	select {
	case <-written:
	case <-over:
	}
}

// end ends the process when its messages are written, or soon.
func end(code int, stderr io.Writer) {
	if m, ok := stderr.(*messages); ok {
		m.flush(flushLimit)
	}
	os.Exit(code)
}

// flushLimit is how long a reader that has stopped delays the end of the process.
const flushLimit = 200 * time.Millisecond

// progress is what a command has that runs no CMD and prints much: the file itself, which may be a terminal. Nothing is
// dropped while its reader is slow.
func progress(stderr io.Writer) io.Writer {
	if m, ok := stderr.(*messages); ok {
		return m.out
	}
	return stderr
}
