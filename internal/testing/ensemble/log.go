package ensemble

import (
	"os"
	"strings"
)

// Log returns the last n lines of what the server has printed, over all its lives. Only warnings and
// errors are logged.
func (s *Server) Log(n int) string {
	data, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return lastLines(string(data), n)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// portTaken reports whether the newest life of the server could not listen. The name of the exception
// is looked for, because its text depends on the locale.
func (s *Server) portTaken() bool {
	s.mu.Lock()
	from := s.logFrom
	s.mu.Unlock()
	data, err := os.ReadFile(s.logFile())
	if err != nil || int64(len(data)) < from {
		return false
	}
	return strings.Contains(string(data[from:]), "java.net.BindException")
}
