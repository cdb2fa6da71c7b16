package ensemble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

var (
	errRunning    = errors.New("server is already running")
	errNotRunning = errors.New("server is not running")
)

// Server is one ZooKeeper server of an [Ensemble]. It keeps its address and its data while it is
// down. All methods may be called concurrently.
type Server struct {
	id     int
	addr   string
	ask    func(ctx context.Context, addr, word string) (string, error) // a four-letter word
	secure string
	dir    string
	in     installation
	heapMB int
	props  []string // -D options
	parent *parent

	mu      sync.Mutex // guards what follows
	proc    *process   // nil until the first launch; may have ended
	logFrom int64      // where in the log the newest launch begins
}

func newServer(id int, dir string, cfg Config, in installation, p *parent, ports []int) *Server {
	secure := ""
	if cfg.TLS != nil {
		secure = net.JoinHostPort(cfg.host(id), strconv.Itoa(securePort(ports, id)))
	}
	return &Server{
		id:     id,
		addr:   net.JoinHostPort(cfg.host(id), strconv.Itoa(clientPort(ports, id))),
		ask:    ask,
		secure: secure,
		dir:    dir,
		in:     in,
		heapMB: cfg.HeapMB,
		props:  cfg.properties(),
		parent: p,
	}
}

func (s *Server) writeFiles(cfg Config, ports []int) error {
	if err := os.MkdirAll(s.dataDir(), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(s.configFile(), []byte(cfg.file(s.id, s.dataDir(), ports)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dataDir(), "myid"), []byte(strconv.Itoa(s.id)+"\n"), 0o644)
}

func (s *Server) dataDir() string    { return filepath.Join(s.dir, "data") }
func (s *Server) configFile() string { return filepath.Join(s.dir, "zoo.cfg") }
func (s *Server) logFile() string    { return filepath.Join(s.dir, "log") }

// Addr returns the address for clients, host:port. It never changes.
func (s *Server) Addr() string { return s.addr }

// SecureAddr returns the address for clients that speak TLS, empty where [Config] does not have that.
func (s *Server) SecureAddr() string { return s.secure }

// Pid returns the process id of the running server, 0 if it is not running.
func (s *Server) Pid() int {
	if p := s.running(); p != nil {
		return p.pid()
	}
	return 0
}

// running returns the process, nil if there is none or it has ended.
func (s *Server) running() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil || s.proc.ended() {
		return nil
	}
	return s.proc
}

// Start starts a server that is not running, with its old data and address, and returns once it
// serves. A server of an ensemble serves only with a majority: to start several, use
// [Ensemble.StartServers]. On error the server may be running, unless it ended by itself.
func (s *Server) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.launch(); err != nil {
		return err
	}
	return awaitServing(ctx, []*Server{s}, true)
}

// Kill ends the server with SIGKILL, as a crash would, and returns once the process is gone.
// It does nothing to a server that is not running.
func (s *Server) Kill() error {
	p := s.running()
	if p == nil {
		return nil
	}
	if err := p.kill(); err != nil {
		return s.fail(err)
	}
	return nil
}

// Stop ends the server with SIGTERM, and with SIGKILL if it does not obey within ten seconds. It
// returns once the process is gone, and does nothing to a server that is not running.
func (s *Server) Stop() error {
	p := s.running()
	if p == nil {
		return nil
	}
	if err := p.stop(); err != nil {
		return s.fail(err)
	}
	return nil
}

// Pause freezes the process (SIGSTOP): its sockets stay open and nothing answers, like a machine that
// is swapping. On Linux it returns when no thread runs any more. It is an error on systems without that signal.
func (s *Server) Pause() error { return s.signal((*process).freeze) }

// Resume lets a paused server go on (SIGCONT).
func (s *Server) Resume() error { return s.signal((*process).thaw) }

func (s *Server) signal(send func(*process) error) error {
	p := s.running()
	if p == nil {
		return s.fail(errNotRunning)
	}
	if err := send(p); err != nil {
		return s.fail(err)
	}
	return nil
}

func (s *Server) fail(err error) error {
	return fmt.Errorf("ensemble: server %d, %s: %w", s.id, s.addr, err)
}

// launch starts the process and does not wait for anything.
func (s *Server) launch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil && !s.proc.ended() {
		return s.fail(errRunning)
	}
	if s.parent.stopped() {
		return s.fail(errClosed) // the folder of the log is gone too
	}
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return s.fail(err)
	}
	defer log.Close() // the process has its own descriptor
	info, err := log.Stat()
	if err != nil {
		return s.fail(err)
	}
	p, err := s.parent.start(s.in.command(s.heapMB, s.props, s.dir, s.configFile()), log)
	if err != nil {
		return s.fail(err)
	}
	s.proc, s.logFrom = p, info.Size()
	return nil
}

// awaitServing returns once all the launched servers serve clients, or one of them never will.
func awaitServing(ctx context.Context, servers []*Server, keepTrying bool) error {
	for {
		serving := 0
		var behind *Server
		for _, s := range servers {
			ok, err := s.look(ctx, keepTrying)
			if err != nil {
				return err
			}
			if ok {
				serving++
			} else {
				behind = s
			}
		}
		if serving == len(servers) {
			return nil
		}
		if err := pause(ctx); err != nil {
			return behind.fail(fmt.Errorf("does not serve yet: %w", err))
		}
	}
}

// look reports whether the launched server serves clients by now. When it has ended because its port
// was taken, keepTrying launches it again: the port of a server that was up before must come free,
// because its clients know no other.
func (s *Server) look(ctx context.Context, keepTrying bool) (serving bool, err error) {
	p, taken := s.running(), s.portTaken()
	switch {
	case taken && !keepTrying:
		// Before anything else: one of three serves without its election port too, for some seconds.
		return false, s.fail(errPortTaken)
	case p != nil:
		return s.serves(ctx), nil
	case !taken:
		return false, s.fail(fmt.Errorf("ended while starting: %s", s.Log(1)))
	}
	if err := s.launch(); err != nil && !errors.Is(err, errRunning) {
		return false, err
	}
	return false, nil
}

// serves reports whether the server answers, and that it is this one: when another process took the
// port, that may well be a ZooKeeper too. The port for TLS opens after the other one; until then the server says
// that it is -1.
func (s *Server) serves(ctx context.Context) bool {
	if _, err := s.probe(ctx); err != nil {
		return false
	}
	conf, err := s.pairs(ctx, "conf", "=")
	return err == nil && strings.HasPrefix(conf["dataDir"], filepath.ToSlash(s.dataDir())) &&
		(s.secure == "" || strings.HasSuffix(s.secure, ":"+conf["secureClientPort"]))
}
