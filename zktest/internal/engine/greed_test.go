package engine

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest/internal/access"
	"github.com/go-menagerie/menagerie/zktest/internal/wire"
)

// inUse returns the memory in use for objects and stacks, without garbage.
func inUse() int {
	runtime.GC()
	runtime.GC() // the first one fills the pools' victims
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// A real server allocates the megabyte when it sees the length.
func TestAnAnnouncedMegabyteCostsNothingUntilItArrives(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		const n = 1000
		before := inUse()
		for i := range n {
			w := dial(t, s)
			if i%2 == 0 {
				w.connect(20*time.Second, 0, nil, 0)
			}
			w.write([]byte{0x00, 0x0f, 0xff, 0xff})
			w.write(make([]byte, 100)) // the beginning
		}
		synctest.Wait()
		require.Equal(t, n, connections(s))
		require.Less(t, (inUse()-before)/n, 100_000, "bytes for a connection with all that it needs")
	})
}

func TestConnectionsThatAreGoneLeaveNothingBehind(t *testing.T) {
	inBubble(t, Config{Tick: time.Second}, func(t *testing.T, s *Server) {
		round := func() {
			for range 1000 {
				w := join(t, s, 4*time.Second)
				w.do(wire.OpAddWatch, kindBody("/x", modeRecursive))
				w.create("/e-", make([]byte, 1000), wire.FlagEphemeral|wire.FlagSequential)
				_ = w.nc.Close()
			}
			time.Sleep(10 * time.Second)
			require.Zero(t, connections(s)+len(s.Sessions())+s.Watches())
		}
		round()
		before := inUse()
		for range 5 {
			round()
		}
		// What the bubble and the test keep of the pipes is far below what 5000 sessions have taken.
		require.Less(t, (inUse()-before)/5000, 2000)
	})
}

func TestCountsThatPromiseTheMoonAreMalformed(t *testing.T) {
	vector := func(e *wire.Encoder) { e.Int32(math.MaxInt32) }
	for name, c := range map[string]struct {
		op   wire.Op
		body func(*wire.Encoder)
	}{
		"a path":         {wire.OpExists, func(e *wire.Encoder) { e.Int32(math.MaxInt32) }},
		"data":           {wire.OpSetData, func(e *wire.Encoder) { e.Text("/"); e.Int32(math.MaxInt32) }},
		"an acl":         {wire.OpCreate, func(e *wire.Encoder) { e.Text("/a"); e.Buffer(nil); vector(e) }},
		"a new acl":      {wire.OpSetACL, func(e *wire.Encoder) { e.Text("/"); vector(e) }},
		"a scheme":       {wire.OpCreate, func(e *wire.Encoder) { e.Text("/a"); e.Buffer(nil); e.Int32(1); e.Int32(31); vector(e) }},
		"data watches":   {wire.OpSetWatches, func(e *wire.Encoder) { e.Int64(0); vector(e) }},
		"child watches":  {wire.OpSetWatches, func(e *wire.Encoder) { e.Int64(0); e.Int32(0); e.Int32(0); vector(e) }},
		"many watches":   {wire.OpSetWatches2, func(e *wire.Encoder) { e.Int64(0); vector(e) }},
		"recursive ones": {wire.OpSetWatches2, func(e *wire.Encoder) { e.Int64(0); e.B = append(e.B, make([]byte, 16)...); vector(e) }},
		"a part":         {wire.OpMulti, part(wire.OpCreate, func(e *wire.Encoder) { e.Text("/a"); e.Buffer(nil); vector(e) })},
		"a part to read": {wire.OpMultiRead, part(wire.OpGetData, func(e *wire.Encoder) { vector(e) })},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Config{}, func(t *testing.T, s *Server) {
				w := join(t, s, 10*time.Second)
				var m0, m1 runtime.MemStats
				runtime.ReadMemStats(&m0)
				r := w.do(c.op, c.body)
				runtime.ReadMemStats(&m1)
				require.Equal(t, wire.CodeMarshalling, r.code)
				require.Less(t, m1.TotalAlloc-m0.TotalAlloc, uint64(1<<20))
				require.Equal(t, wire.CodeOK, w.create("/alive", nil, 0).code)
			})
		})
	}
}

// full fills a request of the largest size with as many copies of a record as there is room for.
func full(head func(*wire.Encoder), record func(*wire.Encoder, int), room int) (body []byte, n int) {
	e := &wire.Encoder{}
	head(e)
	for one := 0; len(e.B)+one+room < 1<<20; n++ {
		before := len(e.B)
		record(e, n)
		one = len(e.B) - before
	}
	return e.B, n
}

func TestTheLargestRequestsOfEachKindAreHandledInPassing(t *testing.T) {
	tail := func(e *wire.Encoder) { multiHeader(e, wire.OpError, true, -1) }
	none := func(*wire.Encoder) {}
	acl, aclN := full(none, func(e *wire.Encoder, i int) { e.Int32(int32(i + 1)); e.Text("ip"); e.Text("1.2.3.4") }, 100)
	auth, authN := full(none, func(e *wire.Encoder, i int) { e.Int32(int32(i + 1)); e.Text("auth"); e.Text("") }, 100)
	checks, _ := full(none, func(e *wire.Encoder, _ int) { multiHeader(e, wire.OpCheck, false, -1); e.Text("/"); e.Int32(-1) }, 100)
	creates, _ := full(none, func(e *wire.Encoder, _ int) {
		multiHeader(e, wire.OpCreate, false, -1)
		createBody("/s-", nil, wire.OpenACL(), wire.FlagSequential)(e)
	}, 100)
	fails := append(bytes.Clone(checks[:len(checks)-4]), 0, 0, 0, 99)
	watches, watchN := full(none, func(e *wire.Encoder, i int) { e.Text(fmt.Sprint(i)) }, 100)
	reads, _ := full(none, func(e *wire.Encoder, _ int) { multiHeader(e, wire.OpGetChildren, false, -1); e.Text("/"); e.Bool(true) }, 100)
	raw := func(b []byte) func(*wire.Encoder) { return func(e *wire.Encoder) { e.B = append(e.B, b...) } }
	list := func(b []byte, n int) func(*wire.Encoder) {
		return func(e *wire.Encoder) { e.Int32(int32(n)); raw(b)(e) }
	}
	for _, c := range []struct {
		name string
		op   wire.Op
		code wire.Code
		body func(*wire.Encoder)
	}{
		{"access lists", wire.OpCreate, wire.CodeOK, func(e *wire.Encoder) { e.Text("/l"); e.Buffer(nil); list(acl, aclN)(e); e.Int32(0) }},
		{"lists of whoever I am", wire.OpCreate, wire.CodeInvalidACL, func(e *wire.Encoder) { e.Text("/m"); e.Buffer(nil); list(auth, authN)(e); e.Int32(0) }},
		{"checks", wire.OpMulti, wire.CodeOK, func(e *wire.Encoder) { raw(checks)(e); tail(e) }},
		{"creates", wire.OpMulti, wire.CodeOK, func(e *wire.Encoder) { raw(creates)(e); tail(e) }},
		{"parts, the last of which fails", wire.OpMulti, wire.CodeOK, func(e *wire.Encoder) { raw(fails)(e); tail(e) }},
		{"watches", wire.OpSetWatches, wire.CodeOK, func(e *wire.Encoder) { e.Int64(0); e.Int32(0); list(watches, watchN)(e); e.Int32(0) }},
		{"recursive watches", wire.OpSetWatches2, wire.CodeOK, func(e *wire.Encoder) { e.Int64(0); raw(make([]byte, 16))(e); list(watches, watchN)(e) }},
		{"reads", wire.OpMultiRead, wire.CodeOK, func(e *wire.Encoder) { raw(reads)(e); tail(e) }},
		{"one path of many elements", wire.OpExists, wire.CodeNoNode, watchBody(string(bytes.Repeat([]byte("/x"), 500_000)), true)},
		{"a create of such a path", wire.OpCreate, wire.CodeNoNode, createBody(string(bytes.Repeat([]byte("/x"), 500_000)), nil, wire.OpenACL(), 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, Config{})
			w := join(t, s, 40*time.Second)
			for i := range access.MaxIDs - 1 {
				auth := func(e *wire.Encoder) { e.Int32(0); e.Text("digest"); e.Buffer(fmt.Append(nil, i)) }
				require.Equal(t, wire.CodeOK, w.do(wire.OpAuth, auth).code)
			}
			begin := time.Now()
			require.Equal(t, c.code, w.do(c.op, c.body).code)
			// Tens of milliseconds of the processor; what grows with the square takes minutes of it. A test
			// that shares two cores with a dozen others was seen to get a tenth of one.
			require.Less(t, time.Since(begin), time.Minute)
		})
	}
}

func TestAClientHasAHundredIdentitiesAtMost(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		for i := range access.MaxIDs {
			r := w.do(wire.OpAuth, func(e *wire.Encoder) { e.Int32(0); e.Text("digest"); e.Buffer(fmt.Append(nil, i)) })
			if i < access.MaxIDs-1 { // its address is one
				require.Equal(t, wire.CodeOK, r.code)
				continue
			}
			require.Equal(t, wire.CodeAuthFailed, r.code)
		}
		w.requireClosed()
	})
}

func TestAReadOfManyThingsIsBounded(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, s *Server) {
		w := join(t, s, 40*time.Second)
		w.create("/big", make([]byte, 1_000_000), 0)
		bomb, _ := full(func(*wire.Encoder) {}, func(e *wire.Encoder, _ int) { part(wire.OpGetData, watchBody("/big", false))(e) }, 100)
		var m0, m1 runtime.MemStats
		runtime.ReadMemStats(&m0)
		w.send(wire.OpMultiRead, func(e *wire.Encoder) { e.B = append(e.B, bomb...); multiHeader(e, wire.OpError, true, -1) })
		w.requireClosed()
		runtime.ReadMemStats(&m1)
		require.Less(t, m1.TotalAlloc-m0.TotalAlloc, uint64(10*maxReply))
		require.Equal(t, wire.CodeOK, join(t, s, 40*time.Second).create("/alive", nil, 0).code)
	})
}
