package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

func nullPath(rest func(*wire.Encoder)) func(*wire.Encoder) {
	return func(e *wire.Encoder) { e.Int32(-1); rest(e) }
}

func TestAPartWithoutAPathIsAnErrorOfTheWholeAndLosesItsZxid(t *testing.T) {
	open := wire.OpenACL()
	rest := map[wire.Op]func(*wire.Encoder){
		wire.OpCreate:  func(e *wire.Encoder) { e.Buffer(nil); e.ACL(open); e.Int32(0) },
		wire.OpDelete:  func(e *wire.Encoder) { e.Int32(-1) },
		wire.OpSetData: func(e *wire.Encoder) { e.Buffer(nil); e.Int32(-1) },
		wire.OpCheck:   func(e *wire.Encoder) { e.Int32(-1) },
	}
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for op, body := range rest {
			before := s.Zxid()
			r := w.do(wire.OpMulti, multiBody(part(wire.OpCreate, createBody("/n", nil, open, 0)), part(op, nullPath(body))))
			require.Equal(t, wire.CodeMarshalling, r.code, op)
			require.Equal(t, before, r.zxid, "the transaction was never begun")
			require.Empty(t, multiCodes(t, r.body), "an empty list of results comes with the error")
			require.Equal(t, wire.CodeOK, w.do(wire.OpSetData, setBody("/", nil, -1)).code)
			require.Equal(t, before+2, s.Zxid(), "and its number is not given again")
		}
		before := s.Zxid()
		r := w.do(wire.OpMulti, multiBody(part(wire.OpGetData, nullPath(func(e *wire.Encoder) { e.Bool(false) }))))
		require.Equal(t, wire.CodeMarshalling, r.code)
		require.Equal(t, before, r.zxid, "that is found before it shows that this is no write")
		require.Empty(t, multiCodes(t, r.body))
		_, ok := s.Node("/n")
		require.False(t, ok)
	})
}

func TestAnErrorThatIsNoAnswerOfAPartIsOneOfTheWholeIfThatPartIsReached(t *testing.T) {
	open := wire.OpenACL()
	stumble := map[string]func(*wire.Encoder){
		"a time to live without a field for it": part(wire.OpCreate2, createBody("/n", nil, open, wire.FlagTTLSequential)),
		"a list that cannot be compared": part(wire.OpCreate, func(e *wire.Encoder) {
			e.Text("/n")
			e.Buffer(nil)
			aclBody([]wire.ACL{open[0], {Perms: wire.PermAll, ID: wire.ID{Scheme: wire.NullName, Name: "x"}}})(e)
			e.Int32(0)
		}),
	}
	inBubble(t, Config{ExtendedTypes: true}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for name, p := range stumble {
			before := s.Zxid()
			r := w.do(wire.OpMulti, multiBody(part(wire.OpCreate, createBody("/first", nil, open, 0)), p))
			require.Equal(t, wire.CodeMarshalling, r.code, name)
			require.Equal(t, before+1, r.zxid, name)
			require.Empty(t, r.body.Rest(), name)
			r = w.do(wire.OpMulti, multiBody(part(wire.OpDelete, versionBody("/nope", -1)), p))
			require.Equal(t, []wire.Code{wire.CodeNoNode, wire.CodeRuntimeInconsistency}, multiCodes(t, r.body), name)
		}
		_, ok := s.Node("/first")
		require.False(t, ok)
		require.Equal(t, "/s-0000000000", w.create("/s-", nil, wire.FlagSequential).body.Text(), "nothing of it is outstanding")
	})
}

func TestWhatMayNotBeAPartMakesTheWholeMultiMalformed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		ok := part(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
		none := func(*wire.Encoder) {}
		for name, p := range map[string]func(*wire.Encoder){
			"setACL":          part(wire.OpSetACL, func(e *wire.Encoder) { e.Text("/"); e.ACL(wire.OpenACL()); e.Int32(-1) }),
			"exists":          part(wire.OpExists, watchBody("/", false)),
			"getChildren2":    part(wire.OpGetChildren2, watchBody("/", false)),
			"getData":         part(wire.OpGetData, watchBody("/", false)),
			"deleteContainer": part(wire.OpDeleteContainer, versionBody("/n", -1)),
			"multi":           part(wire.OpMulti, multiBody()),
			"sync":            part(wire.OpSync, pathBody("/")),
			"close":           part(wire.OpClose, none),
			"an error":        part(wire.OpError, func(e *wire.Encoder) { e.Int32(-101) }),
			"unknown":         part(99, none),
		} {
			before := s.Zxid()
			r := w.do(wire.OpMulti, multiBody(ok, p))
			require.Equal(t, wire.CodeMarshalling, r.code, name)
			require.Empty(t, r.body.Rest(), name)
			require.Equal(t, before+1, s.Zxid(), "%s: it costs a zxid", name)
			require.Equal(t, wire.CodeMarshalling, w.do(wire.OpMulti, multiBody(p)).code, name)
		}
		_, made := s.Node("/n")
		require.False(t, made)
	})
}

func TestAMultiWithoutPartsIsATransactionToo(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		before := s.Zxid()
		r := w.do(wire.OpMulti, multiBody())
		require.Equal(t, wire.CodeOK, r.code)
		require.Empty(t, multiCodes(t, r.body))
		require.Equal(t, before+1, s.Zxid())
		require.Equal(t, wire.CodeMarshalling, w.do(wire.OpMulti, nil).code, "but its end must be there")
	})
}

// readCodes reads the errors of the parts of a multiRead reply.
func readCodes(t *testing.T, d *wire.Decoder) (codes []wire.Code) {
	for {
		op, done, code := wire.Op(d.Int32()), d.Bool(), wire.Code(d.Int32())
		require.NoError(t, d.Err())
		if done {
			require.Empty(t, d.Rest())
			return codes
		}
		codes = append(codes, code)
		switch op {
		case wire.OpGetData:
			d.Buffer()
			d.Stat()
		case wire.OpGetChildren:
			d.Texts()
		default:
			require.Equal(t, wire.OpError, op)
			require.Equal(t, code, wire.Code(d.Int32()))
		}
	}
}

func TestEachPartOfAMultiReadHasItsOwnError(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.create("/n", nil, 0)
		w.do(wire.OpCreate, createBody("/secret", nil, []wire.ACL{{Perms: wire.PermWrite, ID: wire.ID{Scheme: "world", Name: "anyone"}}}, 0))
		get := func(path string) func(*wire.Encoder) { return part(wire.OpGetData, watchBody(path, true)) }
		list := func(path string) func(*wire.Encoder) { return part(wire.OpGetChildren, watchBody(path, true)) }
		before := s.Zxid()
		r := w.do(wire.OpMultiRead, multiBody(get("/n"), list("/n"), get("/nope"), list("/nope"), get("/secret"), list("/secret"), get("bad"), get("")))
		require.Equal(t, wire.CodeOK, r.code)
		require.Equal(t, []wire.Code{0, 0, wire.CodeNoNode, wire.CodeNoNode, wire.CodeNoAuth, wire.CodeNoAuth, wire.CodeNoNode, 0}, readCodes(t, r.body))
		require.Equal(t, before, s.Zxid())
		require.Zero(t, s.Watches(), "a part sets no watch, whatever it says")
		require.Empty(t, readCodes(t, w.do(wire.OpMultiRead, multiBody()).body))
	})
}

func TestAMultiReadOfWhatIsNoReadIsMalformed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		get := part(wire.OpGetData, watchBody("/", false))
		create := part(wire.OpCreate, createBody("/n", nil, wire.OpenACL(), 0))
		for _, parts := range [][]func(*wire.Encoder){
			{part(wire.OpExists, watchBody("/", false))}, {part(wire.OpGetChildren2, watchBody("/", false))}, {get, create}, {create, get},
			{part(wire.OpMultiRead, multiBody(get))},
		} {
			r := w.do(wire.OpMultiRead, multiBody(parts...))
			require.Equal(t, wire.CodeMarshalling, r.code)
			require.Empty(t, r.body.Rest())
		}
		// These can be decoded, so the list of results has been begun when the error comes.
		r := w.do(wire.OpMultiRead, multiBody(create, create))
		require.Equal(t, wire.CodeMarshalling, r.code)
		require.Empty(t, readCodes(t, r.body))
		r = w.do(wire.OpMultiRead, multiBody(get, get, part(wire.OpGetData, nullPath(func(e *wire.Encoder) { e.Bool(false) })), get))
		require.Equal(t, wire.CodeMarshalling, r.code)
		require.Equal(t, []wire.Code{0, 0}, readCodes(t, r.body))
	})
}
