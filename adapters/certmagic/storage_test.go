package zkcertmagic_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/stretchr/testify/require"

	zkcertmagic "github.com/go-menagerie/menagerie/adapters/certmagic"
	"github.com/go-menagerie/menagerie/internal/testing/proving"
	"github.com/go-menagerie/menagerie/zksync"
)

// The files, and beside them the directories that they are in and names that are nowhere.
var (
	files = []string{"a", "certificates/ca/example.com/example.com.crt", "certificates/ca/example.com/example.com.key",
		"certificates/ca/wildcard_.example.com/x.crt", "certificates/other/x", "certificates.json", "ocsp/x@y-1.2", "ä/b c%2F"}
	names = append([]string{"", "certificates", "certificates/ca", "certificates/ca/example.com", "certificates/c", "ocsp", "none", "none/a"}, files...)
)

// Random calls of two processes, in turn under a lock, have the same results as with certmagic's own storage in files.
func TestAcceptance222AStorageIsLikeTheFilesOfCertmagic(t *testing.T) {
	proving.Each(t, func(t *testing.T, v *proving.Env) {
		ours := []*zkcertmagic.Storage{zkcertmagic.New(v.Session(), "/tls"), zkcertmagic.New(v.Session(), "/tls/")}
		theirs := &certmagic.FileStorage{Path: t.TempDir()}
		draw := rand.New(rand.NewPCG(1, 2))
		for i := range 300 {
			st := ours[i%len(ours)]
			require.NoError(t, st.Lock(t.Context(), "calls"))
			both(t, draw, st, theirs)
			require.NoError(t, st.Unlock(t.Context(), "calls"))
		}
	})
}

// both makes one call at both.
func both(t *testing.T, draw *rand.Rand, ours, theirs certmagic.Storage) {
	t.Helper()
	ctx := t.Context()
	name, file := names[draw.IntN(len(names))], files[draw.IntN(len(files))]
	switch draw.IntN(6) {
	case 0, 1:
		value := []byte(strings.Repeat("x", draw.IntN(2000)))
		require.NoError(t, theirs.Store(ctx, file, value))
		require.NoError(t, ours.Store(ctx, file, value))
	case 2:
		if name == "" { // it would delete its own root
			return
		}
		require.NoError(t, theirs.Delete(ctx, name))
		removeEmpty(t, theirs.(*certmagic.FileStorage).Path)
		require.NoError(t, ours.Delete(ctx, name), name)
	case 3:
		want, wrong := theirs.Load(ctx, file)
		got, err := ours.Load(ctx, file)
		require.Equal(t, string(want), string(got), file)
		require.Equal(t, errors.Is(wrong, fs.ErrNotExist), errors.Is(err, fs.ErrNotExist), file)
	case 4:
		require.Equal(t, theirs.Exists(ctx, name), ours.Exists(ctx, name), name)
		want, wrong := theirs.Stat(ctx, name)
		got, err := ours.Stat(ctx, name)
		require.Equal(t, errors.Is(wrong, fs.ErrNotExist), errors.Is(err, fs.ErrNotExist), name)
		if want.IsTerminal {
			require.WithinDuration(t, time.Now(), got.Modified, time.Hour)
		} else {
			want.Size = 0 // of a directory
		}
		want.Modified = got.Modified
		require.Equal(t, want, got)
	case 5:
		recursive := draw.IntN(2) == 0
		want, wrong := theirs.List(ctx, name, recursive)
		got, err := ours.List(ctx, name, recursive)
		require.ElementsMatch(t, want, got, "%q %v", name, recursive)
		require.Equal(t, errors.Is(wrong, fs.ErrNotExist), errors.Is(err, fs.ErrNotExist), "%q", name)
	}
}

// removeEmpty removes the empty directories, which are none for certmagic.Storage.
func removeEmpty(t *testing.T, root string) {
	t.Helper()
	var dirs []string
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() && name != root {
			dirs = append(dirs, name)
		}
		return err
	}))
	for i := len(dirs) - 1; i >= 0; i-- {
		_ = os.Remove(dirs[i]) // fails if there is something in it
	}
}

func TestWhatAStorageOfCertificatesCosts(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		ctx, st := t.Context(), zkcertmagic.New(v.Session(), "/tls")
		for _, name := range []string{"first", "second"} { // the map is made
			require.NoError(t, st.Store(ctx, name, nil))
			require.NoError(t, st.Delete(ctx, name))
		}
		const buckets = 3 // of these three keys
		v.Costs(2, func() { require.NoError(t, st.Store(ctx, "first", nil)) })
		v.Costs(1, func() { require.NoError(t, st.Store(ctx, "first", nil)) })
		v.Costs(1, func() { require.True(t, st.Exists(ctx, "first")) })
		v.Costs(1+2+buckets-1, func() { require.False(t, st.Exists(ctx, "dir")) })
		require.NoError(t, st.Store(ctx, "dir/third", nil))
		v.Costs(1, func() { _, _ = st.Load(ctx, "dir/third") })
		v.Costs(2+buckets, func() { _, _ = st.List(ctx, "dir", true) })
		v.Costs(3, func() { require.NoError(t, st.Delete(ctx, "dir/third")) }) // 2 later: see docs/map.md
	})
}

func TestWhatAStorageOfCertificatesCannotDo(t *testing.T) {
	proving.InProcess(t, func(t *testing.T, v *proving.Env) {
		s := v.Session()
		st := zkcertmagic.New(s, "/tls")
		require.ErrorIs(t, st.Store(t.Context(), "big", make([]byte, 1<<20)), zksync.ErrMisuse)
		require.NoError(t, st.Store(t.Context(), "big", make([]byte, 700<<10)))
		list, err := st.List(t.Context(), "", true)
		require.NoError(t, err)
		require.Equal(t, []string{"big"}, list)
		require.Equal(t, "zkcertmagic /tls", st.String())

		defer v.CutOff(s)()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = st.Load(ctx, "big")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.False(t, st.Exists(ctx, "big"))
		require.Error(t, st.Delete(ctx, "big"))
	})
}
