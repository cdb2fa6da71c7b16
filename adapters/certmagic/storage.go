package zkcertmagic

import (
	"context"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/go-menagerie/menagerie/zkmap"
	"github.com/go-menagerie/menagerie/zksync"
)

// Storage is a certmagic.Storage, with the optional TryLocker and LockLeaseRenewer. Its data are a zkmap.Map, its locks are of
// zksync.Mutex.
//
// A process that holds a lock sees all that earlier holders have stored: its session has seen the grant, and what it reads is never
// older than that.
type Storage struct {
	s    *zksync.Session
	dir  string
	opts []zksync.Option
	data *zkmap.Map[string, file]

	mu   sync.Mutex
	held map[string][]*zksync.Lease // by the names of the locks
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// file is what the map has for a key.
type file struct {
	Modified time.Time `json:"modified"` // by the clock of the process that stored it
	Value    []byte    `json:"value"`
}

// New names a storage: the map is at dir/data, the locks are below dir/locks. A value may have some 700 KB.
func New(s *zksync.Session, dir string, opts ...zksync.CommonOption) *Storage {
	st := &Storage{s: s, dir: strings.TrimSuffix(dir, "/"), held: make(map[string][]*zksync.Lease)}
	for _, o := range opts {
		st.opts = append(st.opts, o)
	}
	st.data = zkmap.New[string, file](s, st.dir+"/data", st.opts...)
	return st
}

func (s *Storage) String() string { return "zkcertmagic " + s.dir }

// clean is a key as certmagic.FileStorage understands it: a/b, without slashes around it. The root is "".
func clean(key string) string { return path.Clean("/" + key)[1:] }

// Store implements certmagic.Storage. A key should not be the directory of others.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	return s.data.Store(ctx, clean(key), file{time.Now().UTC(), value})
}

// Load implements certmagic.Storage.
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	f, there, err := s.data.Load(ctx, clean(key))
	if err == nil && !there {
		err = &fs.PathError{Op: "load", Path: key, Err: fs.ErrNotExist}
	}
	return f.Value, err
}

// Delete implements certmagic.Storage: it deletes a key, or else all that are below it.
func (s *Storage) Delete(ctx context.Context, key string) error {
	_, there, err := s.data.LoadAndDelete(ctx, clean(key))
	if there || err != nil {
		return err
	}
	below, _, err := s.below(ctx, key)
	for _, k := range below {
		if err == nil {
			err = s.data.Delete(ctx, k)
		}
	}
	return err
}

// Exists implements certmagic.Storage. It returns false if that cannot be found out.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// Stat implements certmagic.Storage.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	f, there, err := s.data.Load(ctx, clean(key))
	if there {
		return certmagic.KeyInfo{Key: key, Modified: f.Modified, Size: int64(len(f.Value)), IsTerminal: true}, nil
	}
	var below []string
	if err == nil {
		below, there, err = s.below(ctx, key)
	}
	if err == nil && len(below) == 0 && !there {
		err = &fs.PathError{Op: "stat", Path: key, Err: fs.ErrNotExist}
	}
	if err != nil {
		return certmagic.KeyInfo{}, err
	}
	return certmagic.KeyInfo{Key: key}, nil
}

// List implements certmagic.Storage: what is directly below a key, or also all that is below that. It has directories, too, as
// that of certmagic.FileStorage has.
func (s *Storage) List(ctx context.Context, key string, recursive bool) ([]string, error) {
	below, there, err := s.below(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(below) == 0 && !there {
		return nil, &fs.PathError{Op: "list", Path: key, Err: fs.ErrNotExist}
	}
	found, start := make(map[string]bool), len(within(key))
	for _, k := range below {
		for i, c := range k + "/" {
			if i < start || c != '/' {
				continue
			}
			found[k[:i]] = true // a directory, or k itself
			if !recursive {
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// within is what all keys below a key begin with.
func within(key string) string {
	if key = clean(key); key == "" {
		return ""
	}
	return key + "/"
}

// below returns the keys below a key, and whether it is there itself, as the root always is. It asks for the names of all keys: the map has no order.
func (s *Storage) below(ctx context.Context, key string) (below []string, there bool, err error) {
	there = clean(key) == ""
	for k, err := range s.data.Keys(ctx) {
		if err != nil {
			return nil, false, err
		}
		there = there || k == clean(key)
		if strings.HasPrefix(k, within(key)) {
			below = append(below, k)
		}
	}
	return below, there, nil
}
