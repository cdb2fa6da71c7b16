//go:build unix

package fencing

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/go-menagerie/menagerie/zksync"
)

// File is a file on the disk of one machine. All who write to it use this type, and nothing else writes to it.
type File string

// content is what the file has.
type content struct {
	Token  zksync.Token
	Pieces int
}

// Claim implements Store.
func (f File) Claim(ctx context.Context, l *zksync.Lease) (pieces int, err error) {
	err = f.change(l, func(c *content) { pieces = c.Pieces })
	return pieces, err
}

// Write implements Store.
func (f File) Write(ctx context.Context, l *zksync.Lease, pieces int) error {
	return f.change(l, func(c *content) { c.Pieces = pieces })
}

// change compares and writes under a lock of the kernel, which ends with the process. Without it a process could be
// paused between the two.
func (f File) change(l *zksync.Lease, edit func(*content)) error {
	lock, err := os.OpenFile(string(f)+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	var c content
	data, err := os.ReadFile(string(f))
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.Token().Compare(c.Token) < 0 {
		return refused(l)
	}
	c.Token = l.Token()
	edit(&c)
	return f.replace(c)
}

// replace writes the new content beside the file, and renames it: a reader sees the old one or the new one.
func (f File) replace(c content) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	beside, err := os.OpenFile(string(f)+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = beside.Write(data)
	if err = errors.Join(err, beside.Sync(), beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), string(f))
}
