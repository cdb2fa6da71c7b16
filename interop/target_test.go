package interop

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/internal/testing/ensemble"
	"github.com/go-menagerie/menagerie/zktest"
)

// target is a server that the foreign programs use, and that can be broken.
type target interface {
	addr() string
	// Both know a session by its id and password, as a client does.
	disconnect(session int64, password []byte) error
	expire(session int64, password []byte) error
	restart() error
}

// breakServer does what a program asks for, in its words.
func breakServer(on target, verb string, args []string) error {
	if verb == "restart" {
		return on.restart()
	}
	if len(args) != 2 {
		return fmt.Errorf("want a session and its password, not %q", args)
	}
	session, err := strconv.ParseUint(args[0], 16, 64)
	if err != nil {
		return err
	}
	password, err := hex.DecodeString(args[1])
	if err != nil {
		return err
	}
	switch verb {
	case "disconnect":
		return on.disconnect(int64(session), password)
	case "expire":
		return on.expire(int64(session), password)
	}
	return fmt.Errorf("unknown request %q", verb)
}

// containerInterval is how often both servers look for empty containers and for nodes that are too old.
const containerInterval = 200 * time.Millisecond

// fake is the in-process server.
type fake struct{ srv *zktest.Server }

func newFake(t *testing.T, opts ...zktest.Option) *fake {
	return &fake{zktest.Run(t, append(opts, zktest.WithContainerInterval(containerInterval), zktest.WithTick(500*time.Millisecond),
		zktest.WithExtendedTypes())...)}
}

func (f *fake) addr() string { return f.srv.Addr() }

func (f *fake) disconnect(session int64, _ []byte) error {
	return known(session, f.srv.Disconnect(session))
}

func (f *fake) expire(session int64, _ []byte) error {
	return known(session, f.srv.Expire(session))
}

var errUnknown = errors.New("the server does not know this session")

func known(session int64, ok bool) error {
	if !ok {
		return fmt.Errorf("%w: %x", errUnknown, session)
	}
	return nil
}

func (f *fake) restart() error {
	f.srv.Restart()
	return nil
}

// genuine is a real ZooKeeper. Clients connect to it through a door of ours, which is shut while it starts: a server may
// leave whoever connects then without an answer, and some clients wait for that until their session has expired.
type genuine struct {
	t        *testing.T
	server   *ensemble.Server
	door     net.Listener
	starting sync.RWMutex
}

func newGenuine(t *testing.T) *genuine {
	e := ensemble.ForTestConfig(t, ensemble.Config{Properties: map[string]string{
		"zookeeper.extendedTypesEnabled": "true",
		"znode.container.checkIntervalMs": strconv.FormatInt(
			containerInterval.Milliseconds(), 10),
	}})
	require.Len(t, e.Servers(), 1)
	door, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = door.Close() })
	g := &genuine{t: t, server: e.Servers()[0], door: door}
	go g.admit()
	return g
}

func (g *genuine) addr() string { return g.door.Addr().String() }

func (g *genuine) admit() {
	for {
		c, err := g.door.Accept()
		if err != nil {
			return
		}
		go g.connect(c)
	}
}

// connect hands a client's connection on to the server, until one of them closes it.
func (g *genuine) connect(c net.Conn) {
	defer c.Close()
	if !g.starting.TryRLock() {
		return
	}
	server, err := net.Dial("tcp", g.server.Addr())
	g.starting.RUnlock()
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, c)
		_ = server.Close()
	}()
	_, _ = io.Copy(c, server)
}

// disconnect takes the session over, whereupon the server drops the connection that it was on,
// and lets go of it.
func (g *genuine) disconnect(session int64, password []byte) error {
	c, err := g.resume(session, password)
	if err != nil {
		return err
	}
	return c.Close()
}

// expire takes the session over and closes it. Its old client learns it as it would learn of an expiry.
//
// That client may come back in between, on a connection of its own. Then the server closes that one and the
// session, and leaves ours without an answer: so it is over when the server does not know it any more, and
// each try waits for its answer for twice as long as the one before.
func (g *genuine) expire(session int64, password []byte) error {
	const tries = 10
	for n := 1; ; n++ {
		c, err := g.resume(session, password)
		if n > 1 && errors.Is(err, errUnknown) {
			return nil
		}
		if err == nil {
			err = closeOn(c, 50*time.Millisecond<<n)
		}
		if err == nil || n == tries || errors.Is(err, errUnknown) {
			return err
		}
	}
}

func closeOn(c net.Conn, patience time.Duration) error {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	closeSession := []byte{0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5}
	if _, err := c.Write(closeSession); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4+16))
	return err
}

// resume connects with a session that exists.
func (g *genuine) resume(session int64, password []byte) (net.Conn, error) {
	c, err := net.Dial("tcp", g.addr())
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	var body []byte
	body = binary.BigEndian.AppendUint32(body, 0) // protocol version
	body = binary.BigEndian.AppendUint64(body, 0) // last zxid seen: any server will do
	body = binary.BigEndian.AppendUint32(body, 10_000)
	body = binary.BigEndian.AppendUint64(body, uint64(session))
	body = binary.BigEndian.AppendUint32(body, uint32(len(password)))
	body = append(append(body, password...), 0) // not read-only
	if _, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err == nil {
		err = g.granted(c, session)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (g *genuine) granted(c net.Conn, session int64) error {
	answer := make([]byte, 4+4+4+8+4+16+1)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	return known(session, int64(binary.BigEndian.Uint64(answer[12:])) == session)
}

func (g *genuine) restart() error {
	g.starting.Lock()
	defer g.starting.Unlock()
	if err := g.server.Kill(); err != nil {
		return err
	}
	return g.server.Start(g.t.Context())
}

// gauge reads one number of the server's statistics.
func gauge(t *testing.T, on target, name string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", on.addr())
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "mntr")
	require.NoError(t, err)
	answer, err := io.ReadAll(c)
	require.NoError(t, err)
	for _, line := range strings.Split(string(answer), "\n") {
		if value, ok := strings.CutPrefix(line, name+"\t"); ok {
			n, err := strconv.Atoi(value)
			require.NoError(t, err)
			return n
		}
	}
	t.Fatalf("the server does not tell its %s", name)
	return 0
}
