package node

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func encodeOwner(o Owner, since time.Time) []byte { return Content{Owner: o, Since: since}.Encode() }

func decodeOwner(data []byte) (Owner, time.Time) {
	c := Decode(data)
	return c.Owner, c.Since
}

func TestAnOwnerIsOneSmallJSONObject(t *testing.T) {
	since := time.Date(2026, 3, 1, 12, 0, 0, 5, time.FixedZone("", 3600))
	data := encodeOwner(Owner{Host: "db-1", PID: 42, Name: "nightly"}, since)
	require.JSONEq(t, `{"host":"db-1","pid":42,"name":"nightly","since":"2026-03-01T11:00:00.000000005Z"}`, string(data))
	owner, at := decodeOwner(data)
	require.Equal(t, Owner{Host: "db-1", PID: 42, Name: "nightly"}, owner)
	require.True(t, since.Equal(at))
}

func TestAnOwnerSurvivesItsEncoding(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom(nil, unicode.Letter, unicode.Digit), 0, maxOwnerName, -1)
	rapid.Check(t, func(t *rapid.T) {
		want := Owner{
			Host: text.Draw(t, "host"),
			PID:  rapid.IntRange(0, math.MaxInt32).Draw(t, "pid"),
			Name: text.Draw(t, "name"),
		}
		since := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "nsec"))
		got, at := decodeOwner(encodeOwner(want, since))
		require.Equal(t, want, got)
		require.True(t, since.Equal(at))
	})
}

func TestForeignDataIsReadAsFarAsPossible(t *testing.T) {
	at := time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)
	for data, want := range map[string]struct {
		owner Owner
		since time.Time
	}{
		"":                      {},
		"192.168.7.31":          {owner: Owner{Name: "192.168.7.31"}}, // Curator
		"worker-3\n":            {owner: Owner{Name: "worker-3"}},     // kazoo's identifier
		"\x00\x00\x00\x07":      {},                                   // a counter
		"\xac\xed\x00\x05t\x00": {owner: Owner{Name: "t"}},            // a serialised Java object
		"  padded\t ":           {owner: Owner{Name: "padded"}},
		"null":                  {owner: Owner{Name: "null"}},           // JSON, but not ours
		"17":                    {owner: Owner{Name: "17"}},             //
		`["a"]`:                 {owner: Owner{Name: `["a"]`}},          //
		`{"leader":"x"}`:        {owner: Owner{Name: `{"leader":"x"}`}}, //
		`{"name":"x"`:           {owner: Owner{Name: `{"name":"x"`}},    // cut short
		`{"name":"x"}{}`:        {owner: Owner{Name: `{"name":"x"}{}`}}, //
		`{"host":5,"pid":"x","name":"n","since":"2026-03-01T11:00:00Z"}`: {Owner{Name: "n"}, at},
		`{"host":"h","pid":1e99,"since":7}`:                              {owner: Owner{Host: "h"}},
		`{"host":"h","pid":-4,"since":"yesterday"}`:                      {owner: Owner{Host: "h"}},
		`{"host":"h","pid":1.5}`:                                         {owner: Owner{Host: "h"}},
		`{"host":null,"pid":null,"name":null}`:                           {},
		`{"name":"red\u001b[31m\u202e\u0007"}`:                           {owner: Owner{Name: "red[31m"}},
		"\x1b]0;title\x07 text":                                          {owner: Owner{Name: "]0;title text"}},
	} {
		owner, since := decodeOwner([]byte(data))
		require.Equal(t, want.owner, owner, "%q", data)
		require.True(t, want.since.Equal(since), "%q: %v", data, since)
	}
}

func TestWhatIsTooLongIsCut(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	owner, _ := decodeOwner(encodeOwner(Owner{Host: long, Name: long}, time.Now()))
	require.Equal(t, strings.Repeat("ä", maxOwnerName), owner.Name)
	require.Equal(t, strings.Repeat("ä", maxOwnerHost), owner.Host)

	owner, since := decodeOwner([]byte(`{"name":"` + strings.Repeat("x", 1<<20) + `"}`))
	require.Equal(t, `{"name":"`+strings.Repeat("x", maxOwnerName-9), owner.Name)
	require.Zero(t, since)
}

func TestATimeOutsideTheCalendarCostsOnlyItself(t *testing.T) {
	data := encodeOwner(Owner{Host: "h"}, time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC))
	owner, since := decodeOwner(data)
	require.Equal(t, Owner{Host: "h"}, owner)
	require.True(t, since.IsZero())
}

func TestUnderIsTokensOrNone(t *testing.T) {
	a, b := Token{Zxid: 1}, Token{Zxid: 2, Seq: 3}
	both := a.String() + "," + b.String()
	require.Equal(t, both, FormatUnder([]Token{b, a, b}))
	require.Equal(t, "none", FormatUnder(nil))
	for text, want := range map[string]string{
		both: both, "none": "none", "": "", ",": "", "nobody": "", a.String() + ",": "", a.String() + " ": "", "none," + a.String(): "",
		strings.Repeat(a.String()+",", maxUnder) + b.String(): "",
	} {
		require.Equal(t, want, Decode(Content{Owner: Owner{Host: "h"}, Under: text}.Encode()).Under, "%q", text)
	}
	tokens, known := ParseUnder(both)
	require.True(t, known)
	require.Equal(t, []Token{a, b}, tokens)

	var many []Token
	for i := range 20 {
		many = append(many, Token{Zxid: int64(i + 1)})
	}
	tokens, known = ParseUnder(FormatUnder(many))
	require.True(t, known)
	require.Equal(t, many[4:], tokens, "the newest")
}

func TestATraceIsATraceparent(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for text, valid := range map[string]bool{
		good: true, "01" + good[2:]: true, "": false, "ff" + good[2:]: false, good + "-x": false, good[1:]: false, strings.ToUpper(good): false,
		strings.Replace(good, "-", "0", 1): false, strings.Replace(good, "a3ce", "a-ce", 1): false, strings.Replace(good, "a3ce", "ä3c", 1): false,
		"00-" + traceZero + good[35:]: false, good[:36] + traceZero[:16] + "-01": false,
	} {
		c := Content{Owner: Owner{Host: "h"}, Trace: text}
		require.Equal(t, valid, strings.Contains(string(c.Encode()), "trace"), text)
		read := Decode([]byte(`{"host":"h","trace":"` + text + `"}`)).Trace
		require.Equal(t, valid, read == text && text != "", text)
		require.Equal(t, read, Decode(c.Encode()).Trace, text)
	}
	require.Zero(t, Decode([]byte(`{"host":"h","trace":7}`)).Trace)
}

func FuzzDecodeOwner(f *testing.F) {
	f.Add([]byte(`{"host":"h","pid":1,"name":"n","since":"2026-03-01T11:00:00Z"}`))
	f.Add([]byte("192.168.7.31"))
	f.Add([]byte("\xff\x00\x1b[31m"))
	f.Fuzz(func(t *testing.T, data []byte) {
		owner, since := decodeOwner(data)
		for _, text := range []string{owner.Host, owner.Name} {
			require.True(t, utf8.ValidString(text))
			for _, r := range text {
				require.True(t, unicode.IsPrint(r), "%U", r)
			}
		}
		require.LessOrEqual(t, utf8.RuneCountInString(owner.Name), maxOwnerName)
		require.LessOrEqual(t, utf8.RuneCountInString(owner.Host), maxOwnerHost)
		require.GreaterOrEqual(t, owner.PID, 0)
		again, at := decodeOwner(encodeOwner(owner, since))
		require.Equal(t, owner, again)
		require.True(t, since.Equal(at))
	})
}

func TestAnOwnerIsShownWithWhatIsKnown(t *testing.T) {
	for text, o := range map[string]Owner{
		"unknown":               {},
		"web-3":                 {Host: "web-3"},
		"web-3 (pid 7)":         {Host: "web-3", PID: 7},
		"web-3 (pid 7, loader)": {Host: "web-3", PID: 7, Name: "loader"},
		"unknown host (loader)": {Name: "loader"},
	} {
		require.Equal(t, text, o.String())
	}
}

func TestTheReasonOfARemovalIsCleanedAndBounded(t *testing.T) {
	c := Decode(Content{Owner: Owner{Host: "h"}, Removed: true, Reason: "it\x1b[31m hangs" + strings.Repeat("!", 500)}.Encode())
	require.True(t, c.Removed)
	require.Equal(t, "it[31m hangs"+strings.Repeat("!", maxReason-12), c.Reason)
	require.Equal(t, "ab", Decode([]byte(`{"host":"h","removed":true,"reason":"a\u001b\u202eb"}`)).Reason)
	require.False(t, Decode([]byte(`{"host":"h","removed":"yes"}`)).Removed)
}

func TestTheOwnerAloneIsWrittenAsBesideOtherFields(t *testing.T) {
	for _, o := range []Owner{{}, {Host: "web-3", PID: 4711, Name: "invoices"}, {Host: "a\"b\\c", PID: 1, Name: "<é>\x00"}, {Name: "invoices"}, {Host: "web-3", PID: 4711, Name: "invoices"}} {
		for _, since := range []time.Time{time.Now(), time.Unix(1, 5e8), {}} {
			c := Content{Owner: o, Since: since}
			require.Equal(t, string(c.marshal()), string(c.Encode()))
		}
	}
}
