//go:build unix

package examples

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zktest"
)

// service is a process of the example.
type service struct {
	cmd     *exec.Cmd
	address string
	spans   bytes.Buffer
	ended   chan error

	mu   sync.Mutex
	logs []map[string]any
}

// patience is how long something may take on a busy machine.
const patience = 30 * time.Second

func TestTheServiceReportsAnOutageAndEndsInOrder(t *testing.T) {
	t.Parallel()
	srv, err := zktest.StartAddr("127.0.0.1:0")
	require.NoError(t, err)
	defer srv.Close()
	s := startService(t, "-servers", srv.Addr(), "-every", "1s", "-charge", "500ms", "-drain", "3s")
	require.Equal(t, http.StatusOK, s.get(t, "/ready").status)
	first := s.pay(t, "7")
	require.Equal(t, http.StatusOK, first.status, first.text)
	require.Equal(t, http.StatusConflict, s.pay(t, "7").status)
	for _, id := range []string{"a%2Fb", "%2e%2e", "a%00b"} {
		require.Equal(t, http.StatusBadRequest, s.pay(t, id).status, id)
	}
	s.wait(t, "report")
	text := s.get(t, "/metrics").text
	require.Contains(t, text, `menagerie_acquire_wait_seconds_count{kind="lock",name="/orders/*/lock",outcome="granted"} 2`)
	require.Contains(t, text, `menagerie_session_state{state="connected"} 1`)

	srv.Stop()
	s.until(t, "/ready", http.StatusServiceUnavailable, "not connected")
	require.Contains(t, s.get(t, "/metrics").text, `menagerie_session_state{state="suspended"} 1`)
	time.Sleep(1100 * time.Millisecond) // a shorter outage is not logged
	srv.Restart()
	s.until(t, "/ready", http.StatusOK, "ok")
	require.NotEmpty(t, s.wait(t, "connection lost")["server"])
	require.NotEmpty(t, s.wait(t, "connected again")["after"])
	require.Contains(t, s.get(t, "/metrics").text, "menagerie_reconnects_total 1")

	paid := make(chan answer, 1)
	go func() { paid <- s.pay(t, "8") }()
	srv.Wait(t, "the lock", func() bool { return len(srv.Snapshot("/orders/8/lock")) > 1 })
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	s.until(t, "/ready", http.StatusServiceUnavailable, "the service ends")
	require.Equal(t, http.StatusOK, (<-paid).status, "a request that has begun is finished")
	require.NoError(t, <-s.ended)
	require.Empty(t, srv.Sessions(), "it closed its session")
	s.wait(t, "service ended")
	for _, l := range s.logs {
		require.NotEqual(t, "ERROR", l["level"], l)
	}
	s.hasSpans(t)
}

// SIGTERM before the first connection is no failure.
func TestTheServiceEndsBeforeItIsConnected(t *testing.T) {
	t.Parallel()
	program := buildService(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and never answers
	require.NoError(t, err)
	defer l.Close()
	cmd := exec.Command(program, "-servers", l.Addr().String(), "-listen", "127.0.0.1:0")
	require.NoError(t, cmd.Start())
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// buildService builds the example.
func buildService(t *testing.T) (program string) {
	program = filepath.Join(t.TempDir(), "service")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "service"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// startService builds the example and starts it. The test ends it.
func startService(t *testing.T, args ...string) *service {
	s := &service{cmd: exec.Command(buildService(t), append(args, "-listen", "127.0.0.1:0")...), ended: make(chan error, 1)}
	s.cmd.Stdout = &s.spans
	logs, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			s.logged(lines.Text())
		}
	}()
	go func() { <-read; s.ended <- s.cmd.Wait() }()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-read })
	s.address = s.wait(t, "service listens")["address"].(string)
	return s
}

func (s *service) logged(line string) {
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) != nil {
		fields = map[string]any{"msg": line}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, fields)
}

// wait waits for a line of the log.
func (s *service) wait(t *testing.T, msg string) map[string]any {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		for _, l := range s.logs {
			if l["msg"] == msg {
				s.mu.Unlock()
				return l
			}
		}
		s.mu.Unlock()
	}
	require.FailNow(t, "no such line in the log", "%s: %v", msg, s.logs)
	return nil
}

type answer struct {
	status int
	text   string
}

func (s *service) get(t *testing.T, path string) answer { return s.ask(t, http.MethodGet, path) }
func (s *service) pay(t *testing.T, id string) answer {
	return s.ask(t, http.MethodPost, "/orders/"+id+"/pay")
}

func (s *service) ask(t *testing.T, method, path string) answer {
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.address+path, nil)
	if err != nil {
		return answer{text: err.Error()}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{text: err.Error()}
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return answer{response.StatusCode, string(text)}
}

// until asks until the answer has this status and text.
func (s *service) until(t *testing.T, path string, status int, text string) {
	var a answer
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if a = s.get(t, path); a.status == status && strings.Contains(a.text, text) {
			return
		}
	}
	require.FailNow(t, "no such answer", "%s: %d %s", path, a.status, a.text)
}

// hasSpans requires that the spans of a payment were exported, each below its parent, and the hold of the job, which ends at SIGTERM.
func (s *service) hasSpans(t *testing.T) {
	type span struct {
		Name                string
		SpanContext, Parent struct{ SpanID string }
	}
	spans := make(map[string]span)
	var charge span
	names := make(map[string]int)
	for decoder := json.NewDecoder(&s.spans); decoder.More(); {
		var next span
		require.NoError(t, decoder.Decode(&next))
		spans[next.SpanContext.SpanID] = next
		names[next.Name]++
		if next.Name == "charge" {
			charge = next
		}
	}
	var path []string
	for at := charge; at.Name != ""; at = spans[at.Parent.SpanID] {
		path = append(path, at.Name)
	}
	require.Equal(t, []string{"charge", "hold /orders/*/lock", "acquire /orders/*/lock", "POST /orders/{id}/pay"}, path)
	require.Equal(t, 2, names["charge"], "a paid order is not charged for again")
	require.Equal(t, 1, names["hold leader-cron"], names)
}
