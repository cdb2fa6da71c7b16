package zkserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func nullPath(rest func(*Encoder)) func(*Encoder) {
	return func(e *Encoder) { e.Int32(-1); rest(e) }
}

func TestAPartWithoutAPathIsAnErrorOfTheWholeAndLosesItsZxid(t *testing.T) {
	open := OpenACL()
	rest := map[Op]func(*Encoder){
		OpCreate:  func(e *Encoder) { e.Buffer(nil); e.ACL(open); e.Int32(0) },
		OpDelete:  func(e *Encoder) { e.Int32(-1) },
		OpSetData: func(e *Encoder) { e.Buffer(nil); e.Int32(-1) },
		OpCheck:   func(e *Encoder) { e.Int32(-1) },
	}
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for op, body := range rest {
			before := s.Zxid()
			r := w.do(OpMulti, multiBody(part(OpCreate, createBody("/n", nil, open, 0)), part(op, nullPath(body))))
			require.Equal(t, CodeMarshalling, r.code, op)
			require.Equal(t, before, r.zxid, "the transaction was never begun")
			require.Empty(t, multiCodes(t, r.body), "an empty list of results comes with the error")
			require.Equal(t, CodeOK, w.do(OpSetData, setBody("/", nil, -1)).code)
			require.Equal(t, before+2, s.Zxid(), "and its number is not given again")
		}
		before := s.Zxid()
		r := w.do(OpMulti, multiBody(part(OpGetData, nullPath(func(e *Encoder) { e.Bool(false) }))))
		require.Equal(t, CodeMarshalling, r.code)
		require.Equal(t, before, r.zxid, "that is found before it shows that this is no write")
		require.Empty(t, multiCodes(t, r.body))
		_, ok := s.Node("/n")
		require.False(t, ok)
	})
}

func TestAnErrorThatIsNoAnswerOfAPartIsOneOfTheWholeIfThatPartIsReached(t *testing.T) {
	open := OpenACL()
	stumble := map[string]func(*Encoder){
		"a time to live without a field for it": part(OpCreate2, createBody("/n", nil, open, flagTTLSeq)),
		"a list that cannot be compared": part(OpCreate, func(e *Encoder) {
			e.Text("/n")
			e.Buffer(nil)
			aclBody([]ACL{open[0], {PermAll, ID{nullName, "x"}}})(e)
			e.Int32(0)
		}),
	}
	inBubble(t, Config{ExtendedTypes: true}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		for name, p := range stumble {
			before := s.Zxid()
			r := w.do(OpMulti, multiBody(part(OpCreate, createBody("/first", nil, open, 0)), p))
			require.Equal(t, CodeMarshalling, r.code, name)
			require.Equal(t, before+1, r.zxid, name)
			require.Empty(t, r.body.Rest(), name)
			r = w.do(OpMulti, multiBody(part(OpDelete, versionBody("/nope", -1)), p))
			require.Equal(t, []Code{CodeNoNode, CodeRuntimeInconsistency}, multiCodes(t, r.body), name)
		}
		_, ok := s.Node("/first")
		require.False(t, ok)
		require.Equal(t, "/s-0000000000", w.create("/s-", nil, FlagSequential).body.Text(), "nothing of it is outstanding")
	})
}

func TestWhatMayNotBeAPartMakesTheWholeMultiMalformed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		ok := part(OpCreate, createBody("/n", nil, OpenACL(), 0))
		none := func(*Encoder) {}
		for name, p := range map[string]func(*Encoder){
			"setACL":          part(OpSetACL, func(e *Encoder) { e.Text("/"); e.ACL(OpenACL()); e.Int32(-1) }),
			"exists":          part(OpExists, watchBody("/", false)),
			"getChildren2":    part(OpGetChildren2, watchBody("/", false)),
			"getData":         part(OpGetData, watchBody("/", false)),
			"deleteContainer": part(OpDeleteContainer, versionBody("/n", -1)),
			"multi":           part(OpMulti, multiBody()),
			"sync":            part(OpSync, pathBody("/")),
			"close":           part(OpClose, none),
			"an error":        part(opError, func(e *Encoder) { e.Int32(-101) }),
			"unknown":         part(99, none),
		} {
			before := s.Zxid()
			r := w.do(OpMulti, multiBody(ok, p))
			require.Equal(t, CodeMarshalling, r.code, name)
			require.Empty(t, r.body.Rest(), name)
			require.Equal(t, before+1, s.Zxid(), "%s: it costs a zxid", name)
			require.Equal(t, CodeMarshalling, w.do(OpMulti, multiBody(p)).code, name)
		}
		_, made := s.Node("/n")
		require.False(t, made)
	})
}

func TestAMultiWithoutPartsIsATransactionToo(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		before := s.Zxid()
		r := w.do(OpMulti, multiBody())
		require.Equal(t, CodeOK, r.code)
		require.Empty(t, multiCodes(t, r.body))
		require.Equal(t, before+1, s.Zxid())
		require.Equal(t, CodeMarshalling, w.do(OpMulti, nil).code, "but its end must be there")
	})
}

// readCodes reads the errors of the parts of a multiRead reply.
func readCodes(t *testing.T, d *Decoder) (codes []Code) {
	for {
		op, done, code := Op(d.Int32()), d.Bool(), Code(d.Int32())
		require.NoError(t, d.Err())
		if done {
			require.Empty(t, d.Rest())
			return codes
		}
		codes = append(codes, code)
		switch op {
		case OpGetData:
			d.Buffer()
			decodeStat(d)
		case OpGetChildren:
			d.Texts()
		default:
			require.Equal(t, opError, op)
			require.Equal(t, code, Code(d.Int32()))
		}
	}
}

func TestEachPartOfAMultiReadHasItsOwnError(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		w.create("/n", nil, 0)
		w.do(OpCreate, createBody("/secret", nil, []ACL{{Perms: PermWrite, ID: ID{Scheme: "world", Name: "anyone"}}}, 0))
		get := func(path string) func(*Encoder) { return part(OpGetData, watchBody(path, true)) }
		list := func(path string) func(*Encoder) { return part(OpGetChildren, watchBody(path, true)) }
		before := s.Zxid()
		r := w.do(OpMultiRead, multiBody(get("/n"), list("/n"), get("/nope"), list("/nope"), get("/secret"), list("/secret"), get("bad"), get("")))
		require.Equal(t, CodeOK, r.code)
		require.Equal(t, []Code{0, 0, CodeNoNode, CodeNoNode, CodeNoAuth, CodeNoAuth, CodeNoNode, 0}, readCodes(t, r.body))
		require.Equal(t, before, s.Zxid())
		require.Zero(t, s.Watches(), "a part sets no watch, whatever it says")
		require.Empty(t, readCodes(t, w.do(OpMultiRead, multiBody()).body))
	})
}

func TestAMultiReadOfWhatIsNoReadIsMalformed(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 10*time.Second)
		get := part(OpGetData, watchBody("/", false))
		create := part(OpCreate, createBody("/n", nil, OpenACL(), 0))
		for _, parts := range [][]func(*Encoder){
			{part(OpExists, watchBody("/", false))}, {part(OpGetChildren2, watchBody("/", false))}, {get, create}, {create, get},
			{part(OpMultiRead, multiBody(get))},
		} {
			r := w.do(OpMultiRead, multiBody(parts...))
			require.Equal(t, CodeMarshalling, r.code)
			require.Empty(t, r.body.Rest())
		}
		// These can be decoded, so the list of results has been begun when the error comes.
		r := w.do(OpMultiRead, multiBody(create, create))
		require.Equal(t, CodeMarshalling, r.code)
		require.Empty(t, readCodes(t, r.body))
		r = w.do(OpMultiRead, multiBody(get, get, part(OpGetData, nullPath(func(e *Encoder) { e.Bool(false) })), get))
		require.Equal(t, CodeMarshalling, r.code)
		require.Equal(t, []Code{0, 0}, readCodes(t, r.body))
	})
}
