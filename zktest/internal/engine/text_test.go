package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// What a real server gives back for a path that is not UTF-8.
func TestBytesThatAreNoTextAreReplacedAsByTheJVM(t *testing.T) {
	const r = "\uFFFD"
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for in, want := range map[string]string{
			"/\xff": "/" + r, "/a\xc3": "/a" + r, "/\xe2\x82": "/" + r, "/\xed\xa0\x80": "/" + r,
			"/\xc0\x80": "/" + r + r, "/\xf0\x82\x82\xac": "/" + r + r + r + r, "/\xe2\x28\xa1": "/" + r + "(" + r,
			"/\xf8\x88\x80\x80\x80": "/" + r + r + r + r + r, "/\xed\xa0\xbd\xed\xb8\x80": "/" + r + r,
			"/\xf4\x90\x80\x80": "/" + r + r + r + r, "/\xf0\x9f\x98": "/" + r, "/\xf0\x9fx": "/" + r + "x",
			"/\xe0\x80\x80": "/" + r + r + r, "/\xf1\xff": "/" + r + r, "/\x80\x80": "/" + r + r,
			"/\u00e9\u9fff": "/\u00e9\u9fff",
		} {
			got := w.do(wire.OpSync, func(e *wire.Encoder) { e.Buffer([]byte(in)) }).body.Text()
			require.Equal(t, want, got, "%q", in)
		}
	})
}

func TestCharactersOutsideTheBasicPlaneAreSentAsTwoHalves(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		got := w.do(wire.OpSync, pathBodyRaw("/\U0001F600!")).body.Buffer()
		require.Equal(t, "/\xed\xa0\xbd\xed\xb8\x80!", string(got))
		require.Equal(t, wire.CodeBadArguments, w.create("/\U0001F600", nil, 0).code, "no node can have such a name")
	})
}

func pathBodyRaw(path string) func(*wire.Encoder) {
	return func(e *wire.Encoder) { e.Buffer([]byte(path)) }
}
