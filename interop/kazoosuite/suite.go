//go:build unix

package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed doors.py
var plugin []byte

// suite is how kazoo's tests are run.
type suite struct {
	only         string
	limit, whole time.Duration
}

// on runs the tests on a server. said is what pytest has printed.
func (s *suite) on(ctx context.Context, server string) (all outcomes, said string, err error) {
	dir, err := os.MkdirTemp("", "kazoosuite")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "doors.py"), plugin, 0o600); err != nil {
		return nil, "", err
	}
	var doors []*door // of one server: kazoo has a test that moves from one address to another
	var addresses []string
	for range 3 {
		d, err := openDoor(server)
		if err != nil {
			return nil, "", err
		}
		defer d.shut()
		doors, addresses = append(doors, d), append(addresses, d.address)
	}
	gatekeeper, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	defer gatekeeper.Close()
	go func() { _ = http.Serve(gatekeeper, keep(doors)) }()

	results := filepath.Join(dir, "outcomes")
	said, err = s.pytest(ctx, dir, "DOORS="+strings.Join(addresses, ","), "GATEKEEPER="+gatekeeper.Addr().String(), "OUTCOMES="+results)
	if err != nil {
		return nil, said, err
	}
	text, err := os.ReadFile(results)
	return read(string(text)), said, err
}

// keep answers those who want a door open or shut.
func keep(doors []*door) http.Handler {
	mux := http.NewServeMux()
	for i, d := range doors {
		mux.HandleFunc("/open/"+strconv.Itoa(i), func(w http.ResponseWriter, _ *http.Request) {
			if err := d.open(); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
		mux.HandleFunc("/shut/"+strconv.Itoa(i), func(http.ResponseWriter, *http.Request) { d.shut() })
	}
	return mux
}

// pytest runs the tests, and returns what it has printed. That some of the tests fail is no error.
func (s *suite) pytest(ctx context.Context, dir string, env ...string) (said string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.whole, fmt.Errorf("kazoo's tests took more than %v", s.whole))
	defer cancel()
	args := []string{"-m", "pytest", "-p", "doors", "-p", "no:cacheprovider", "-q", "--tb=short", "--pyargs", "kazoo.tests"}
	if s.only != "" {
		args = append(args, "-k", s.only)
	}
	// Debian's, which has Debian's kazoo.
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), append(env, "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "ZOOKEEPER_VERSION=3.8.0",
		fmt.Sprintf("LIMIT=%.0f", s.limit.Seconds()))...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // some tests start processes
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &exit) && exit.ExitCode() == 1: // some tests failed
		err = nil
	}
	return string(out), err
}

// serve starts "menagerie serve" with the session timeouts of a real server.
func serve(ctx context.Context, command string) (address string, end func(), err error) {
	cmd := exec.CommandContext(ctx, command, "serve", "--listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		end()
		return "", nil, fmt.Errorf("%s serve: it did not say where it listens: %q", command, line)
	}
	return address, end, nil
}
