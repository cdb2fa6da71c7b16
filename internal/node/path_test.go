package node

import (
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestGoodPathsAreAccepted(t *testing.T) {
	for _, path := range []string{
		"/a", "/a/b", "/a b", "/...", "/.a", "/a.", "/a/..b", "/a..", "/ä/漢字", "/a/\u00a0", "/\ud7ff",
		"/\uf900", "/\uffef", "/zookeeperx", "/a/zookeeper", "/a,b:c", `/a\b"`,
		"/" + strings.Repeat("x", maxPathLen-1),
	} {
		require.NoError(t, ValidatePath(path), "%.90q", path)
	}
}

func TestBadPathsAreRefusedWithTheReasonAndTheFix(t *testing.T) {
	for path, want := range map[string]string{
		"":                   `the path is empty: give an absolute path such as "/locks/orders"`,
		"a":                  `a path begins with "/": misuse`,
		"a/b":                `a path begins with "/"`,
		"/":                  `the path is the root: give a path below it`,
		"/a/":                `the path ends with "/": remove it`,
		"//":                 `ends with "/"`,
		"//a":                `has an empty name in it: write a single "/"`,
		"/a//b":              `has an empty name in it: write a single "/"`,
		"/.":                 `has the relative name "." in it: write the absolute path`,
		"/..":                `has the relative name ".." in it`,
		"/a/../b":            `has the relative name ".." in it`,
		"/a/./b":             `has the relative name "." in it`,
		"/a/..":              `has the relative name ".." in it`,
		"/zookeeper":         `belongs to the server itself: choose a path outside "/zookeeper"`,
		"/zookeeper/quota":   `belongs to the server itself`,
		"/a\x00b":            `the path has a NUL character at byte 2: leave it out`,
		"/a\tb":              `has the control character U+0009 at byte 2`,
		"/a\x7f":             `has the control character U+007F at byte 2`,
		"/a\u0085":           `has the control character U+0085 at byte 2`,
		"/a\ue000":           `has the private use character U+E000 at byte 2`,
		"/a\uf8ff":           `has the private use character U+F8FF at byte 2`,
		"/a\ufff0":           `has the special character U+FFF0 at byte 2`,
		"/a\ufffd":           `has the special character U+FFFD at byte 2`,
		"/a\U0001f512":       `has the character U+1F512, beyond the basic plane, at byte 2`,
		"/a\xff":             `has a byte that is not UTF-8 at byte 2`,
		"/a\xed\xa0\x80":     `has a byte that is not UTF-8 at byte 2`,
		"/a/b\xc3":           `has a byte that is not UTF-8 at byte 4`,
		"/a/\x1b[31mred\x07": `the path has the control character U+001B at byte 3`,
	} {
		err := ValidatePath(path)
		require.ErrorIs(t, err, errs.ErrMisuse, "%q", path)
		require.ErrorContains(t, err, want, "%q", path)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestAnErrorShowsNoMoreThanTheBeginningOfAPath(t *testing.T) {
	path := "/" + strings.Repeat("ä", 1<<20)
	err := errs.Wrap("zksync", "lock", path, ValidatePath(path))
	require.ErrorIs(t, err, errs.ErrMisuse)
	require.EqualError(t, err, `zksync: lock "/`+strings.Repeat("ä", 80-1)+`"...: the path is 2097153 bytes long: stay within 65536: misuse`)
}

// javaRefuses is ZooKeeper's rule as its documentation and its server state it, in
// UTF-16 units and position by position: written unlike the code it checks.
func javaRefuses(path string) bool {
	units := utf16.Encode([]rune(path))
	if len(units) == 0 || units[0] != '/' {
		return true
	}
	if len(units) > 1 && units[len(units)-1] == '/' {
		return true
	}
	name := []uint16{}
	for _, u := range append(units[1:], '/') {
		if u != '/' {
			bad := u <= 0x1f || u >= 0x7f && u <= 0x9f || u >= 0xd800 && u <= 0xf8ff || u >= 0xfff0
			if bad {
				return true
			}
			name = append(name, u)
			continue
		}
		dots := strings.Trim(string(utf16.Decode(name)), ".") == "" && len(name) <= 2
		if dots && len(units) > 1 { // "", "." and ".."
			return true
		}
		name = name[:0]
	}
	return false
}

func TestTheRuleIsThatOfTheServersPlusOurOwn(t *testing.T) {
	alphabet := rapid.SampledFrom([]rune("//...ab\x00\x01\x1f \x7e\x7f\u009f\u00a0\ud7ff\ue000\uf8ff\uf900\uffef\ufff0\uffff\U00010000\U0010ffff"))
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.OneOf(
			rapid.StringOfN(alphabet, 0, 8, -1),
			rapid.Map(rapid.StringOfN(alphabet, 0, 8, -1), func(s string) string { return "/" + s }),
			rapid.String(),
		).Draw(t, "path")
		if !utf8.ValidString(path) {
			require.Error(t, ValidatePath(path))
			return
		}
		own := path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/")
		require.Equal(t, javaRefuses(path) || own, ValidatePath(path) != nil, "%q", path)
	})
}

func TestEveryCharacterIsJudgedAsTheServersJudgeIt(t *testing.T) {
	const beyondTheBasicPlane = 1 << 16 // where a sample is enough
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r > beyondTheBasicPlane {
			r = min(r+1000, utf8.MaxRune)
		}
		if path := "/a" + string(r); utf8.ValidRune(r) && r != '/' && javaRefuses(path) != (ValidatePath(path) != nil) {
			require.Failf(t, "judged differently", "%U: %v", r, ValidatePath(path))
		}
	}
}

func FuzzValidatePath(f *testing.F) {
	for _, path := range []string{"", "/", "/a", "/a/../b", "/a\x00", "/\xff", "/\U0001f512", "/zookeeper"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		err := ValidatePath(path)
		if err == nil {
			require.False(t, javaRefuses(path), "%q", path)
			require.True(t, utf8.ValidString(path))
			return
		}
		require.ErrorIs(t, err, errs.ErrMisuse)
		require.Less(t, len(err.Error()), 1024)
		require.NotContains(t, err.Error(), "\n")
	})
}
