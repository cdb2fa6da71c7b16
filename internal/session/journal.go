package session

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// sessionJournal is what this process would leave behind if it died now: the sessions that
// the servers may still have, its predecessors' among them. It keeps the session file
// up to date, from which a successor learns of them. A session goes out of it only
// when the servers have confirmed that it is gone. Until the first session of our own
// nothing is written, so a Connect that fails leaves the file as it was.
type sessionJournal struct {
	file    *sessionFile
	servers string
	logger  *slog.Logger

	mu       sync.Mutex
	sessions []savedSession // the oldest first
	stale    bool           // the file could not be written
}

// maxJournal bounds what processes that die one after the other, each before it could
// end the last one's session, hand down. The oldest is the likeliest to have expired.
const maxJournal = 16

// openJournal opens the file and takes over what is in it.
func openJournal(path string, servers []string, logger *slog.Logger) (*sessionJournal, error) {
	file, previous, err := openSessionFile(path)
	if err != nil {
		return nil, err
	}
	return &sessionJournal{file: file, servers: strings.Join(servers, ","), logger: logger, sessions: previous}, nil
}

// inherited is what there is to end of the predecessors.
func (e *sessionJournal) inherited() []zkconn.Credentials {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []zkconn.Credentials
	for _, s := range e.sessions {
		all = append(all, zkconn.Credentials{ID: s.ID, Passwd: s.Password})
	}
	return all
}

// add enters a session of this process.
func (e *sessionJournal) add(id int64, passwd []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.find(id)
	if i >= 0 && !e.stale {
		return // a reconnect
	}
	if i < 0 {
		e.sessions = append(e.sessions, savedSession{ID: id, Password: slices.Clone(passwd), Servers: e.servers})
		e.sessions = e.sessions[max(0, len(e.sessions)-maxJournal):]
	}
	e.write()
}

// remove takes out a session that the servers have not got any more.
func (e *sessionJournal) remove(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.find(id); i >= 0 {
		e.sessions = slices.Delete(e.sessions, i, i+1)
		e.write()
	}
}

// find is the index of a session; mu is held.
func (e *sessionJournal) find(id int64) int {
	return slices.IndexFunc(e.sessions, func(s savedSession) bool { return s.ID == id })
}

// write brings the file up to date. mu is held.
func (e *sessionJournal) write() {
	err := e.update()
	if e.stale = err != nil; e.stale {
		e.logger.Error("cannot keep the session for a successor; after a crash others wait out the timeout",
			"error", err)
	}
}

func (e *sessionJournal) update() error {
	n := len(e.sessions)
	if n == 0 {
		return e.file.clear()
	}
	return e.file.save(e.sessions[:n-1], e.sessions[n-1])
}

// close leaves the file to the next process.
func (e *sessionJournal) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	if e.stale {
		err = e.update()
	}
	return errors.Join(err, e.file.close())
}
