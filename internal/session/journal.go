package session

import (
	"slices"
	"strings"
	"sync"

	"github.com/go-menagerie/menagerie/internal/logs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// sessionJournal lists the sessions that would stay on the servers if this process died now: its
// own, and those of its predecessors. It keeps the session file up to date, so that a successor
// knows them. A session is removed only when the servers have confirmed its end. Nothing is written
// before this process has a session of its own, so a Connect that fails leaves the file as it was.
type sessionJournal struct {
	file *sessionFile
	log  *logs.Log

	mu       sync.Mutex
	sessions []zkconn.Credentials // the oldest first
}

// maxJournal bounds the number of sessions, for processes that die one after the other before
// they can end the sessions of those before. The oldest are dropped, because they expire first.
const maxJournal = 16

// openJournal opens the file and takes over what is in it.
func openJournal(path string, servers []string, log *logs.Log) (*sessionJournal, error) {
	file, previous, err := openSessionFile(path, strings.Join(servers, ","))
	if err != nil {
		return nil, err
	}
	return &sessionJournal{file: file, log: log, sessions: previous}, nil
}

// inherited are the sessions of the predecessors, which must be ended.
func (j *sessionJournal) inherited() []zkconn.Credentials {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.sessions)
}

// add adds a session of this process. It is called at each connect of the session.
func (j *sessionJournal) add(id int64, passwd []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.find(id) >= 0 {
		return // it was added at an earlier connect
	}
	j.sessions = append(j.sessions, zkconn.Credentials{ID: id, Passwd: slices.Clone(passwd)})
	j.sessions = j.sessions[max(0, len(j.sessions)-maxJournal):]
	j.write()
}

// remove removes a session that has ended on the servers.
func (j *sessionJournal) remove(id int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if i := j.find(id); i >= 0 {
		j.sessions = slices.Delete(j.sessions, i, i+1)
		j.write()
	}
}

// find is the index of a session, or negative. mu is held.
func (j *sessionJournal) find(id int64) int {
	return slices.IndexFunc(j.sessions, func(s zkconn.Credentials) bool { return s.ID == id })
}

// write brings the file up to date. mu is held.
func (j *sessionJournal) write() {
	if err := j.file.save(j.sessions); err != nil {
		j.log.Once("session file", "").Error("cannot keep the session for a successor: after a crash, waiters wait for the session timeout", "error", err)
	}
}

// close unlocks the file and leaves it to the next process.
func (j *sessionJournal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.close()
}
