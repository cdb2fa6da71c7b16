package engine

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// version is what the server says it is: the release that it behaves as. It has been built when it was started.
func (s *Server) version() string {
	return s.cfg.Release.Version + "-menagerie, built on " + s.clock.start.UTC().Format("2006-01-02 15:04 UTC")
}

// words are the four-letter words that the server knows.
var words map[string]func(*Server, *strings.Builder)

func init() { // the words themselves refer to the table
	words = map[string]func(*Server, *strings.Builder){
		"ruok": func(_ *Server, b *strings.Builder) { b.WriteString("imok") },
		"isro": func(_ *Server, b *strings.Builder) { b.WriteString("rw") },
		"srvr": (*Server).srvr, "stat": (*Server).stat, "mntr": (*Server).mntr, "cons": (*Server).cons,
		"wchs": (*Server).wchs, "wchc": (*Server).wchc, "wchp": (*Server).wchp,
		"dump": (*Server).dump, "conf": (*Server).conf, "envi": (*Server).envi, "dirs": (*Server).dirs,
		"srst": (*Server).srst, "crst": (*Server).crst,
	}
}

func isWord(s string) bool {
	_, ok := words[s]
	return ok
}

// handleWord answers a four-letter word and closes the connection.
func (c *conn) handleWord(word string) {
	s := c.srv
	c.arrived(len(word))
	s.mu.Lock()
	defer s.mu.Unlock()
	c.word = true
	var b strings.Builder
	if allowed := s.cfg.FourLetterWords; allowed != nil && !slices.Contains(allowed, word) && !slices.Contains(allowed, "*") {
		fmt.Fprintf(&b, "%s is not executed because it is not in the whitelist.\n", word)
	} else if s.order.serves() || word == "ruok" || word == "envi" {
		words[word](s, &b)
	} else if word == "isro" {
		b.WriteString("null")
	} else {
		b.WriteString("This ZooKeeper instance is not currently serving requests\n")
	}
	c.send([]byte(b.String()), 0, false)
	c.shut()
}

func (s *Server) srvr(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s\n", s.version())
	s.vitals(b)
}

func (s *Server) stat(b *strings.Builder) {
	fmt.Fprintf(b, "Zookeeper version: %s\nClients:\n", s.version())
	queued := s.queued()
	for _, c := range s.connections() {
		c.describe(b, queued[c], true)
	}
	b.WriteByte('\n')
	s.vitals(b)
}

func (s *Server) vitals(b *strings.Builder) {
	k := &s.stats
	fmt.Fprintf(b, "Latency min/avg/max: %d/%s/%d\n", k.latency.Low, k.latency.Average(), k.latency.High)
	fmt.Fprintf(b, "Received: %d\nSent: %d\nConnections: %d\nOutstanding: %d\n",
		k.received.Load(), k.sent.Load(), len(s.conns), s.unanswered())
	fmt.Fprintf(b, "Zxid: 0x%x\nMode: %s\nNode count: %d\n", uint64(s.tree.Zxid), s.order.standing().mode, s.tree.Size())
}

func (s *Server) srst(b *strings.Builder) {
	s.stats.reset()
	s.watches.ResetFirings()
	b.WriteString("Server stats reset.\n")
}

func (s *Server) crst(b *strings.Builder) {
	for c := range s.conns {
		c.stats.reset()
	}
	b.WriteString("Connection stats reset.\n")
}

// conf prints the settings under the names of a real server, whose files this one does not have.
func (s *Server) conf(b *strings.Builder) {
	fmt.Fprintf(b, "clientPort=%d\nsecureClientPort=-1\n", s.port())
	b.WriteString("dataDir=\ndataDirSize=0\ndataLogDir=\ndataLogSize=0\n")
	fmt.Fprintf(b, "tickTime=%d\nmaxClientCnxns=0\n", s.cfg.Tick.Milliseconds())
	fmt.Fprintf(b, "minSessionTimeout=%d\nmaxSessionTimeout=%d\n", s.cfg.MinTimeout.Milliseconds(), s.cfg.MaxTimeout.Milliseconds())
	fmt.Fprintf(b, "clientPortListenBacklog=-1\nserverId=%d\n", s.order.standing().number)
}

// envi prints what there is of a real server's environment: this one does not run in a Java machine.
func (s *Server) envi(b *strings.Builder) {
	fmt.Fprintf(b, "Environment:\nzookeeper.version=%s\nhost.name=localhost\n", s.version())
	fmt.Fprintf(b, "go.version=%s\nos.name=%s\nos.arch=%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func (s *Server) dirs(b *strings.Builder) {
	b.WriteString("datadir_size: 0\nlogdir_size: 0\n")
}
