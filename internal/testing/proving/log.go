package proving

import (
	"log/slog"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/zksync"
)

// Log is the lines that a session has logged. It may be read while the session logs.
type Log struct {
	mu    sync.Mutex
	lines strings.Builder
}

// Option makes a session log to l.
func (l *Log) Option() zksync.SessionOption {
	return zksync.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

// String returns all lines.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}
