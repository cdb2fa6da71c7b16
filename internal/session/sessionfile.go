package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// sessionFile keeps the sessions of this process for its successor. With the id and the password the
// successor connects to a session of its dead predecessor and closes it. The file is locked from open to
// close, against other processes and other Sessions of this one. The operating system unlocks it when the
// process dies, however it dies. So the lock proves that the sessions found in the file have no living owner.
type sessionFile struct {
	file    *os.File
	servers string // of the connect string, for whoever reads the file
}

// maxSessionFile is far above what save writes. A larger file is not ours.
const maxSessionFile = 64 << 10

// errSessionFileLocked is returned by openLocked when the file has another owner.
var errSessionFileLocked = errs.Misuse("another living process, or another session of this one, uses it; give each its own file")

// openSessionFile opens and locks the file, and creates it if it is missing. It returns the sessions that the
// last process left in it, the oldest first. There are none after a clean end, and none if the content is not
// what save wrote: a process may have died while it wrote, and that must not keep its successor from
// starting. An error wraps errs.ErrMisuse if somebody else has the file open or if it cannot be kept private.
func openSessionFile(path, servers string) (*sessionFile, []zkconn.Credentials, error) {
	file, err := openLocked(path)
	var content []byte
	if err == nil {
		if content, err = io.ReadAll(io.LimitReader(file, maxSessionFile+1)); err != nil {
			err = errors.Join(err, file.Close())
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("zksync: session file %s: %w", errs.ShowPath(path), err)
	}
	return &sessionFile{file, servers}, decodeSessions(content), nil
}

// sessionLine is the content of the file: the newest session, and
// the earlier ones whose end is not certain, the oldest first.
type sessionLine struct {
	sessionKey
	Servers string       `json:"servers"`
	Earlier []sessionKey `json:"earlier,omitempty"`
}

// sessionKey is what is needed to end a session. The id is
// written in the form in which ZooKeeper's own tools show it.
type sessionKey struct {
	Session  string `json:"session"`
	Password []byte `json:"password"`
}

// save replaces the content with the given sessions, the oldest first. It writes the line in one
// piece over the old one, and then cuts the file to the length of the line. So a process that is
// killed at any moment leaves the old line or the new one: whatever follows the first line is
// ignored. Without sessions the file is emptied, because this process leaves nothing to clean up.
// The file itself stays: if it were removed, two processes could lock two files of the same name.
func (f *sessionFile) save(sessions []zkconn.Credentials) error {
	line, err := f.encode(sessions)
	if err == nil {
		_, err = f.file.WriteAt(line, 0)
	}
	if err == nil {
		err = f.file.Truncate(int64(len(line)))
	}
	if err == nil {
		err = f.file.Sync()
	}
	return f.failed("save", err)
}

func (f *sessionFile) encode(sessions []zkconn.Credentials) ([]byte, error) {
	if len(sessions) == 0 {
		return nil, nil
	}
	var keys []sessionKey
	for _, s := range sessions {
		keys = append(keys, sessionKey{"0x" + strconv.FormatUint(uint64(s.ID), 16), s.Passwd})
	}
	newest := len(keys) - 1
	line, err := json.Marshal(sessionLine{keys[newest], f.servers, keys[:newest]})
	if len(line) >= maxSessionFile {
		return nil, errs.Misuse("sessions of %d bytes are too large", len(line))
	}
	return append(line, '\n'), err
}

// close unlocks the file and leaves its content for the next process. Closing
// again does nothing.
func (f *sessionFile) close() error {
	if err := f.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return f.failed("close", err)
	}
	return nil
}

// failed names the file in err; the os package does so only in some errors.
func (f *sessionFile) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("zksync: %s session file %s: %w", op, errs.ShowPath(f.file.Name()), err)
}

// decodeSessions returns nil unless content begins with a line that save wrote.
func decodeSessions(content []byte) []zkconn.Credentials {
	text, _, complete := bytes.Cut(content, []byte("\n"))
	var line sessionLine
	if !complete || len(content) > maxSessionFile || json.Unmarshal(text, &line) != nil {
		return nil
	}
	var sessions []zkconn.Credentials
	for _, k := range append(line.Earlier, line.sessionKey) {
		// Base 0 accepts the "0x". The comparison below refuses
		// all that save does not write, such as a bare number.
		id, err := strconv.ParseUint(k.Session, 0, 64)
		if err != nil || id == 0 || k.Session != "0x"+strconv.FormatUint(id, 16) || len(k.Password) == 0 {
			return nil
		}
		sessions = append(sessions, zkconn.Credentials{ID: int64(id), Passwd: k.Password})
	}
	return sessions
}
