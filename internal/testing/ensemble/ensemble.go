// Package ensemble runs real ZooKeeper servers, one or three, for tests and benchmarks.
//
// The servers are Java processes started from Debian's ZooKeeper jars, on free loopback ports and in
// a temporary directory. They can be killed, stopped, frozen and restarted one by one, and they end
// with the process that started them, whatever way that process ends.
//
//	e, err := ensemble.Start(ctx, ensemble.Config{Servers: 3})
//	if err != nil { ... }
//	defer e.Close()
//	conn, events, err := zk.Connect(strings.Split(e.Connect(), ","), 4*time.Second)
//
// Tests use [ForTest], which cleans up after itself and shows the servers' logs when the test fails.
package ensemble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// startLimit bounds one start of a server, so that a start fails even under a context that never
	// ends. Three virtual machines on two busy cores need a thirtieth of it; one that was killed at the wrong
	// moment may take more than a minute until the others take it in.
	startLimit = 3 * time.Minute

	// stopLimit is how long a server may take to end by itself before it is killed.
	stopLimit = 10 * time.Second

	// startAttempts is how many sets of ports are tried. A set is lost when another process takes
	// one of the ports in the moment between our test of it and the server's use.
	startAttempts = 5
)

// Ensemble is a set of running ZooKeeper servers that belong to this process.
// All methods may be called concurrently.
type Ensemble struct {
	dir     string
	lock    *os.File // says that dir is in use
	servers []*Server
	parent  *parent
	network *network // nil unless the servers are in networks of their own
	close   sync.Once
	closed  error // written once under close
}

// Start starts an ensemble and returns once every server of it serves clients.
//
// If ZooKeeper or Java is not installed the error matches [ErrNotInstalled] and names the command
// that installs them. If the servers do not come up it is a [*StartError] with their logs. On error
// nothing is left running and no files are left behind.
func Start(ctx context.Context, cfg Config) (*Ensemble, error) {
	return start(ctx, cfg, reservePorts)
}

// start is Start with the source of the ports as a parameter, which lets a test hand out taken ones.
func start(ctx context.Context, cfg Config, reserve func(int) (*reservation, error)) (*Ensemble, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	in, err := find()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		e, err := startOnce(ctx, cfg, in, reserve)
		if err == nil || !errors.Is(err, errPortTaken) || attempt == startAttempts {
			return e, err
		}
	}
}

func startOnce(ctx context.Context, cfg Config, in installation, reserve func(int) (*reservation, error)) (*Ensemble, error) {
	ports, err := reserve(cfg.Servers * portsPerServer)
	if err != nil {
		return nil, fmt.Errorf("ensemble: %w", err)
	}
	defer ports.release()
	dir, err := os.MkdirTemp("", dirPattern)
	if err != nil {
		return nil, fmt.Errorf("ensemble: %w", err)
	}
	e := &Ensemble{dir: dir, parent: newParent()}
	if e.lock, err = lockFolder(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("ensemble: %w", err), e.Close())
	}
	if cfg.Networks {
		if e.network, err = newNetwork(cfg.Servers); err != nil {
			return nil, errors.Join(err, e.Close())
		}
	}
	for id := 1; id <= cfg.Servers; id++ {
		s := newServer(id, filepath.Join(dir, fmt.Sprintf("server%d", id)), cfg, in, e.parent, ports.numbers)
		if e.network != nil {
			s.parent, s.ask = e.network.places[id], e.network.ask
		}
		if err := s.writeFiles(cfg, ports.numbers); err != nil {
			return nil, errors.Join(fmt.Errorf("ensemble: %w", err), e.Close())
		}
		e.servers = append(e.servers, s)
	}
	// Held until here, so that two ensembles that start at the same time get different ports.
	ports.release()
	if err := e.launch(ctx, false); err != nil {
		err = &StartError{Err: err, Logs: e.Logs(40)}
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// launch starts all servers before it waits for any: the first of three serves only once a second
// one is there to form a quorum with.
func (e *Ensemble) launch(ctx context.Context, keepTrying bool) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for _, s := range e.servers {
		if err := s.launch(); err != nil && !errors.Is(err, errRunning) {
			return err
		}
	}
	return awaitServing(ctx, e.servers, keepTrying)
}

// Connect returns the connect string of the ensemble: the client addresses of all servers, joined by
// commas. It stays the same when servers stop and start.
func (e *Ensemble) Connect() string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr
	}
	return strings.Join(addrs, ",")
}

// Servers returns the servers, in the order of the connect string, running or not.
func (e *Ensemble) Servers() []*Server {
	return append([]*Server(nil), e.servers...)
}

// Leader waits until one server is the leader and returns it; a standalone server counts as one.
// On error, which is the context's, no server led while it waited.
func (e *Ensemble) Leader(ctx context.Context) (*Server, error) {
	for {
		for _, s := range e.servers {
			mode, err := s.probe(ctx)
			if err == nil && (mode == ModeLeader || mode == ModeStandalone) {
				return s, nil
			}
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("ensemble: no leader: %w", err)
		}
	}
}

// StopServers stops every server, each with a chance to end by itself. Data and ports are kept.
func (e *Ensemble) StopServers() error {
	errs := make([]error, len(e.servers))
	var wg sync.WaitGroup
	for i, s := range e.servers {
		wg.Go(func() { errs[i] = s.Stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// StartServers starts every server that is not running, on its old port and data, and returns once
// all of them serve. On error some of them may be running.
func (e *Ensemble) StartServers(ctx context.Context) error {
	return e.launch(ctx, true)
}

// Dir returns the temporary folder of the ensemble, which is removed when it is closed.
func (e *Ensemble) Dir() string { return e.dir }

// Logs returns the last n lines that each server has logged, under a heading per server.
func (e *Ensemble) Logs(n int) string {
	var b strings.Builder
	for _, s := range e.servers {
		fmt.Fprintf(&b, "--- server %d, %s ---\n%s\n", s.id, s.addr, s.Log(n))
	}
	return b.String()
}

// Close kills what is still running and removes the data. It is idempotent; the error is about files
// that could not be removed or a process that could not be killed.
func (e *Ensemble) Close() error {
	e.close.Do(func() {
		// First, so that nothing starts behind our back.
		e.parent.stop()
		for _, s := range e.servers {
			s.parent.stop()
		}
		var errs []error
		for _, s := range e.servers {
			errs = append(errs, s.Kill())
		}
		if e.network != nil {
			e.network.close()
		}
		if e.lock != nil {
			e.lock.Close()
		}
		errs = append(errs, os.RemoveAll(e.dir))
		e.closed = errors.Join(errs...)
	})
	return e.closed
}

// StartError reports that the servers were started but did not come to serve.
type StartError struct {
	Err  error  // what was waited for, or how a server ended
	Logs string // the end of every server's log, several lines
}

// Error returns one line; the logs are left to the caller.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause, so that errors.Is sees a cancelled context.
func (e *StartError) Unwrap() error { return e.Err }
