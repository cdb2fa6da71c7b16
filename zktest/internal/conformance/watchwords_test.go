package conformance

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// word asks a server a four-letter word.
func word(t testing.TB, srv server, name string) string {
	t.Helper()
	nc, err := srv.dial()
	require.NoError(t, err)
	require.NoError(t, nc.SetDeadline(time.Now().Add(patience)))
	_, err = nc.Write([]byte(name))
	require.NoError(t, err)
	answer, err := io.ReadAll(nc)
	require.NoError(t, err)
	return string(answer)
}

// ask puts a server's answer to a word into the transcript, line by line. Lines that are indented are shown with
// the one that they belong to, and all are sorted: a real server prints connections and sessions in no order.
func (w *world) ask(name string, keep ...string) {
	var lines []string
	heading := ""
	for line := range strings.Lines(word(w.t, w.srv, name)) {
		line = w.comparable(strings.TrimSuffix(line, "\n"))
		if strings.HasPrefix(line, "\t") {
			line = heading + line
		} else {
			heading = line
		}
		if line == "expire:" || strangers.MatchString(line) {
			continue // of the former there may be one or several
		}
		if key, _, found := strings.Cut(line, "\t"); len(keep) == 0 || found && slices.Contains(keep, strings.TrimPrefix(key, "zk_")) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		w.say(name + ": " + strings.ReplaceAll(line, "\t", " | "))
	}
}

// watches is the number of watches that a server reports. Look at its changes: a client that watches a null path
// leaves some for ever behind in a real one.
func (w *world) watches() int {
	_, rest, _ := strings.Cut(word(w.t, w.srv, "mntr"), "zk_watch_count\t")
	n, err := strconv.Atoi(rest[:strings.IndexByte(rest, '\n')])
	require.NoError(w.t, err)
	return n
}

var variable = []struct {
	is *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`/127\.0\.0\.1:\d+|/pipe`), "/ADDRESS"},
	{regexp.MustCompile(`(est|lresp|llat|minlat|avglat|maxlat)=\d+`), "$1=N"},
	// A real server counts a packet a moment after it has left, and then listens again.
	{regexp.MustCompile(`\[\d\]\(queued=\d+`), "[N](queued=N"},
	{regexp.MustCompile(`(sent=|Sent: )\d+`), "${1}N"},
	// It also counts a request a moment after it has handed it on, so one that is done already may be missing.
	{regexp.MustCompile(`^Outstanding: -\d+`), "Outstanding: 0"},
	{regexp.MustCompile(`^(Zookeeper version:|Latency min/avg/max:) .*`), "$1 ..."},
	{regexp.MustCompile(`^\d+ expire at .*`), "expire:"}, // one tick's, or two
	{regexp.MustCompile(`Session Sets \(\d+\)`), "Session Sets (n)"},
	{regexp.MustCompile(`Connections Sets \(\d+\)/\(\d+\)`), "Connections Sets (n)/(m)"},
	{regexp.MustCompile(`^(data\w+|clientPort)=.*`), "$1="}, // there are no files here, and no port
	{regexp.MustCompile(`^(\w+dir_size): .*`), "$1:"},
}

// strangers are connections of sessions that are no more: a real server may file one away once again when it has
// just closed it.
var strangers = regexp.MustCompile(`sessionId: 0x[1-9a-f]`)

// comparable replaces what must differ between two servers.
func (w *world) comparable(line string) string {
	for _, v := range variable {
		line = v.is.ReplaceAllString(line, v.to)
	}
	for i, c := range w.clients {
		if c.session != nil {
			line = strings.ReplaceAll(line, fmt.Sprintf("0x%x", c.session.id), fmt.Sprintf("session%d", i))
		}
	}
	line = numbered16.ReplaceAllStringFunc(line, func(s string) string {
		name, hex, _ := strings.Cut(s, "0x")
		z, _ := strconv.ParseInt(hex, 16, 64)
		return fmt.Sprintf("%sz%d", name, z-w.origin)
	})
	return strings.ReplaceAll(line, w.base, "~")
}

var numbered16 = regexp.MustCompile(`(Zxid: |lzxid=)0x[0-9a-f]{1,15}\b`)

func init() {
	add("the words that count", func(w *world) {
		a, b := w.join("A"), w.join("B")
		w.ask("srst")
		w.ask("crst")
		w.ask("cons")
		a.all(create("~/a", "data", persistent), get("~/a", true), create("~/a", "", persistent))
		b.all(set("~/a", "new", -1), list("/", false), exists("~/none", true))
		a.fence()
		for _, name := range []string{"ruok", "isro", "srvr", "stat", "cons", "srvr"} {
			w.ask(name)
		}
		a.all(auth("digest", "u:p"), multi(set("~/a", "x", -1)), syncOf("/"), set("~/a", "", 77))
		w.ask("cons")
		a.fence()
		w.ask("xxxx")
		w.ask("srvr")
	})
	add("the words about watches", func(w *world) {
		a, b, c := w.join("A"), w.join("B"), w.join("C")
		before := w.watches()
		ask := func() {
			for _, name := range []string{"wchs", "wchc", "wchp"} {
				w.ask(name)
			}
			w.say(fmt.Sprint("watches: ", w.watches()-before))
		}
		a.all(exists("~/x", true), addWatch("~/y", modePersistent), addWatch("~/z", modeRecursive), list("~", true))
		b.all(exists("~/x", true), exists("~/v", true))
		ask()
		c.all(create("~/x", "", persistent), create("~/y", "", persistent))
		ask()
		a.all(removeWatches("~/y", typeData), get("~/y", true))
		b.close()
		ask()
	})
}

func init() {
	add("the words about sessions and settings", func(w *world) {
		a, b := w.join("A"), w.join("B")
		a.all(create("~/e", "", ephemeral), create("~/f", "", ephemeral))
		b.do(create("~/g", "", ephemeral))
		for _, name := range []string{"dump", "conf", "dirs"} {
			w.ask(name)
		}
		// A session that had many ephemerals keeps the table for them: it decides about the order.
		b.do(addWatch("~", modeRecursive))
		for i := range 60 {
			a.do(create(fmt.Sprintf("~/e%d", i), "", ephemeral))
		}
		for i := range 60 {
			a.do(remove(fmt.Sprintf("~/e%d", i), -1))
		}
		a.all(remove("~/e", -1), remove("~/f", -1))
		w.ask("dump")
		for i := range 9 {
			a.do(create(fmt.Sprintf("~/h%d", i), "", ephemeral))
		}
		a.do(ephemerals("~"))
		w.ask("dump")
		a.close()
		b.fence()
		w.ask("dump")
	})
	add("the monitoring values", func(w *world) {
		a, b := w.join("A"), w.join("B")
		values := []string{ // without outstanding_requests, which is -1 for a moment now and then in a real server
			"server_state", "ephemerals_count", "num_alive_connections", "znode_count", "global_sessions",
			"local_sessions", "last_client_response_size", "max_client_response_size", "min_client_response_size", "packets_received",
			"approximate_data_size", "bytes_received_count", "connection_request_count", "response_bytes",
			"stale_sessions_expired", "cnt_updatelatency", "cnt_readlatency",
		}
		for _, kind := range []string{"created", "deleted", "changed", "children"} {
			for _, of := range []string{"avg", "min", "max", "cnt", "sum"} {
				values = append(values, of+"_node_"+kind+"_watch_count")
			}
		}
		w.ask("srst")
		w.ask("mntr", values...)
		for _, c := range []*client{a, b} {
			c.all(addWatch("~", modeRecursive), exists("~/n", true), list("~", true))
		}
		b.all(create("~/n", "data", ephemeral), set("~/n", "more data", -1), get("~/n", true), list2("~/n", true), remove("~/none", -1))
		a.fence()
		w.ask("mntr", values...)
		b.close()
		a.fence()
		c := w.join("C")
		c.do(getACL("~"))
		c.fence()
		w.ask("mntr", values...)
	})
}

func TestEveryMonitoringValueIsOneOfTheRealServersAndInItsOrder(t *testing.T) {
	keys := func(srv server) (out []string) {
		for line := range strings.Lines(word(t, srv, "mntr")) {
			key, _, _ := strings.Cut(line, "\t")
			out = append(out, key)
		}
		return out
	}
	real, ours := keys(startReal(t, settings{})), keys(startOwn(t, settings{}))
	require.NotEmpty(t, ours)
	for _, key := range ours {
		i := slices.Index(real, key)
		require.GreaterOrEqual(t, i, 0, "%s is not there, or not there any more after the one before", key)
		real = real[i+1:]
	}
}
