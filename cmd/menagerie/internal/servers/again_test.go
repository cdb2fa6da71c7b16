package servers

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

func TestAServerThatStaysBehindIsAFinding(t *testing.T) {
	inEnsemble(t, func(t *testing.T, e *zktest.Ensemble, o Options) {
		lags := (e.Leader() + 1) % 3
		s := e.SessionAt(t, e.Leader())
		synctest.Wait()
		catchUp := e.Lag(lags)
		for range 3 {
			_, err := s.Conn().Set("/", nil, -1)
			require.NoError(t, err)
		}
		r := Look(t.Context(), o)
		lag := r.Servers[lags].ZxidLag
		require.GreaterOrEqual(t, lag, int64(3))
		require.LessOrEqual(t, lag, int64(7), "the leader may be asked after our two other sessions have begun and ended")
		require.Contains(t, texts(r), fmt.Sprintf("problem: %s is behind by %d transactions for at least 500ms", o.Servers[lags], lag))
		// It has half a second to catch up.
		time.AfterFunc(watching-time.Millisecond, catchUp)
		r = look(t, o, watching)
		require.Empty(t, r.Findings)
		require.EqualValues(t, 0, r.Servers[lags].ZxidLag)
	}, zktest.WithLeftovers()) // the session at the server that lags was granted too late
}

func TestAServerIsBehindOnlyIfItsNewestAnswerIs(t *testing.T) {
	for name, c := range map[string]struct {
		later []string // its answers after the first one, which is behind
		lag   int64
		took  time.Duration
	}{
		"caught up at once":  {[]string{"0x100000009"}, 0, 0},
		"caught up in time":  {[]string{"0x100000008", "0x10000000a"}, 0, watching},
		"still behind":       {[]string{"0x100000008", "0x100000008"}, 1, watching},
		"no second answer":   {[]string{""}, -1, 0},
		"a later term began": {[]string{"0x200000000"}, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			texts := []string{strings.ReplaceAll(srvr38, "0x200000007", "0x100000007")}
			for _, zxid := range c.later {
				texts = append(texts, strings.ReplaceAll(srvr38, "0x200000007", zxid))
			}
			ahead := []string{strings.ReplaceAll(srvr38, "0x200000007", "0x100000009")}
			alone(t, func(t *testing.T, s *zktest.Server, o Options) {
				plain := o.Dial
				o.Servers = []string{"behind:1", "ahead:1"}
				o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := plain(ctx, network, addr)
					return &doctored{conn, "srvr", map[bool]*[]string{true: &texts, false: &ahead}[addr == o.Servers[0]], nil}, err
				}
				r := look(t, o, c.took)
				require.Equal(t, []int64{c.lag, 0}, []int64{r.Servers[0].ZxidLag, r.Servers[1].ZxidLag})
				require.Empty(t, texts)
			})
		})
	}
}

// A server prints the sessions before the nodes. A session that began in between is in the next dump.
func TestASessionIsMissingOnlyIfTwoDumpsMissIt(t *testing.T) {
	const head, missed = "SessionTracker dump:\nSession Sets (1)/(1):\n", "ephemeral nodes dump:\nSessions with Ephemerals (1):\n0x77:\n\t/a\n"
	for name, c := range map[string]struct {
		dumps []string
		want  string
	}{
		"it began in between": {[]string{head + missed, head + "1 expire at Sat Jan 01 00:00:06 UTC 2000:\n\t0x77\n" + missed}, "not connected to any server"},
		"another one":         {[]string{head + strings.ReplaceAll(missed, "77", "78"), head + missed}, ""},
		"no second answer":    {[]string{head + missed, ""}, "not connected to any server"},
		"it does not exist":   {[]string{head + missed, head + missed}, "its session does not exist (ZOOKEEPER-4837): release it"},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, s *zktest.Server, o Options) {
				plain := o.Dial
				o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := plain(ctx, network, addr)
					return &doctored{conn, "dump", &c.dumps, nil}, err
				}
				text, _ := look(t, o, 0).Dead(0x77)
				require.Equal(t, c.want, text)
				require.Empty(t, c.dumps)
			})
		})
	}
}

// doctored answers a word with the texts of the test, one after the other.
type doctored struct {
	net.Conn
	word  string
	texts *[]string
	text  io.Reader
}

func (d *doctored) Write(b []byte) (int, error) {
	if string(b) == d.word && len(*d.texts) > 0 {
		d.text, *d.texts = strings.NewReader((*d.texts)[0]), (*d.texts)[1:]
		return len(b), nil
	}
	return d.Conn.Write(b)
}

func (d *doctored) Read(b []byte) (int, error) {
	if d.text != nil {
		return d.text.Read(b)
	}
	return d.Conn.Read(b)
}
