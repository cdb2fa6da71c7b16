//go:build unix

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-menagerie/menagerie/zkqueue"
	"github.com/go-menagerie/menagerie/zksync"
)

// lines are what CMDs have written to a file.
func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// work starts queue work with a script that has a file of its own as $0.
func (s *server) work(t *testing.T, script string, flags ...string) (p *program, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "file")
	args := append([]string{"queue", "work", "/q", "--servers", s.addr}, flags...)
	return start(t, append(args, "--", "sh", "-c", script, file)...), file
}

// ended waits for the end of queue work, which may have printed more than one line.
func (p *program) ended(code int, fragments ...string) {
	p.t.Helper()
	require.Equal(p.t, code, p.wait(), "stderr: %s", p.stderr.String())
	for _, f := range fragments {
		require.Contains(p.t, p.stderr.String(), f)
	}
}

func (s *server) puts(t *testing.T, values ...string) {
	t.Helper()
	for _, v := range values {
		run(t, "queue", "put", "/q", v, "--servers", s.addr).succeeded()
	}
}

func TestAcceptance173QueueWorkRunsCMDOnEachElement(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p, file := s.work(t, `echo "$(cat)/$MENAGERIE_VALUE/$MENAGERIE_ATTEMPT/$MENAGERIE_PATH/$MENAGERIE_ID/$MENAGERIE_TOKEN" >>"$0"`, "-n", "3")
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "nothing was ever put into /q") }, patience, pause)
	for i := range 6 {
		s.puts(t, strconv.Itoa(i))
	}
	require.Eventually(t, func() bool { return len(lines(t, file)) == 6 && s.ChildCount(elements) == 0 }, patience, pause)
	p.signal(syscall.SIGTERM)
	p.ended(143, "interrupted by SIGTERM")
	seen := map[string]bool{}
	for _, l := range lines(t, file) {
		require.Regexp(t, `^[0-5]/[0-5]/1//q/[0-9a-f]{8}\.000000000[0-5]/[0-9a-f]{16}-[0-9a-f]{8}$`, l)
		require.Equal(t, l[0], l[2])
		seen[l[:1]] = true
	}
	require.Len(t, seen, 6)
}

func TestAcceptance173WhatFailsIsADeadLetterThatIsListedAndRedriven(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.puts(t, "good", "bad one", "worse")
	p, file := s.work(t, `echo "$MENAGERIE_ATTEMPT" >>"$0"; test "$MENAGERIE_VALUE" = good || exit 7`, "--max-attempts", "2", "--back-off", "10ms", "--max-back-off", "20ms")
	require.Eventually(t, func() bool { return s.ChildCount("/q/zkqueue/dead") == 2 }, patience, pause)
	p.signal(os.Interrupt)
	p.ended(130, "attempt 1: sh has ended with exit code 7", "an element has become a dead letter")
	require.ElementsMatch(t, []string{"1", "1", "1", "2", "2"}, lines(t, file))
	require.Zero(t, s.ChildCount(elements))

	dead := run(t, "queue", "dead", "/q", "--servers", s.addr)
	dead.succeeded()
	rows := strings.Split(strings.TrimSpace(dead.stdout.String()), "\n")
	require.Len(t, rows, 3)
	require.Regexp(t, `^ID +ATTEMPTS +ENQUEUED +DIED +ERROR +ELEMENT$`, rows[0])
	require.Regexp(t, `^[0-9a-f]{8}\.\d{10} +2 +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ +\S+Z +sh has ended with exit code 7 +bad one$`, rows[1])
	run(t, "ls", "/q", "--servers", s.addr).succeeded()
	ls := run(t, "ls", "/q", "--servers", s.addr)
	ls.succeeded()
	require.Contains(t, ls.stdout.String(), "/q: queue, 0 elements, 2 dead letters")

	var letters []map[string]any
	asJSON := run(t, "queue", "dead", "/q", "--json", "--servers", s.addr)
	asJSON.succeeded()
	require.NoError(t, json.Unmarshal([]byte(asJSON.stdout.String()), &letters))
	require.Len(t, letters, 2)
	require.Equal(t, "worse", letters[1]["data"])
	require.Equal(t, "sh has ended with exit code 7", letters[1]["err"])
	require.EqualValues(t, 2, letters[1]["attempts"])
	for _, key := range []string{"enqueued", "died"} {
		at, err := time.Parse(time.RFC3339, letters[1][key].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Hour)
	}

	one := run(t, "queue", "redrive", "/q", letters[1]["id"].(string), "--servers", s.addr)
	one.succeeded()
	require.Equal(t, "1 element put into /q again\n", one.stdout.String())
	run(t, "queue", "redrive", "/q", letters[1]["id"].(string), "--servers", s.addr).failed(exitNoSuchPath, "/q has no dead letter "+letters[1]["id"].(string))
	all := run(t, "queue", "redrive", "/q", "--servers", s.addr)
	all.succeeded()
	require.Equal(t, "1 element put into /q again\n", all.stdout.String())
	all = run(t, "queue", "redrive", "/q", "--servers", s.addr)
	all.succeeded()
	require.Equal(t, "0 elements put into /q again\n", all.stdout.String())
	again := run(t, "queue", "receive", "/q", "--servers", s.addr, "--", "sh", "-c", `echo "$MENAGERIE_VALUE $MENAGERIE_ATTEMPT"`)
	again.succeeded()
	require.Equal(t, "worse 1\n", again.stdout.String())
}

func TestAcceptance173DeadLettersOfABoundedQueueAndOfAnyBytes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	q := zkqueue.New[[]byte](s.session(t), "/q", zkqueue.WithCapacity(1), zksync.WithCodec(zksync.Raw))
	require.NoError(t, q.Put(t.Context(), []byte{0xff, 0}))
	p, _ := s.work(t, "exit 1", "--max-attempts", "1", "--capacity", "1")
	require.Eventually(t, func() bool { return s.ChildCount("/q/zkqueue/dead") == 1 }, patience, pause)
	p.signal(os.Interrupt)
	p.ended(130)
	dead := run(t, "queue", "dead", "/q", "--json", "--servers", s.addr)
	dead.succeeded()
	require.Contains(t, dead.stdout.String(), `"data": "/wA="`)
	require.Contains(t, dead.stdout.String(), `"base64": true`)
	run(t, "queue", "redrive", "/q", "--servers", s.addr).succeeded()
	v, err := q.Take(t.Context())
	require.NoError(t, err)
	require.Equal(t, []byte{0xff, 0}, v)
}

// After the first signal what runs goes on, and is acknowledged if it succeeds; what fails comes again at once.
func TestAcceptance173ASignalLetsCMDGoOn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.puts(t, "good", "bad", "later")
	p, file := s.work(t, `trap 'echo "signal" >>"$0"; exec 3>&-' TERM; echo begun >>"$0"; while ! grep -q go "$0"; do sleep 0.05; done; test "$MENAGERIE_VALUE" = good`, "-n", "2", "--max-attempts", "1")
	require.Eventually(t, func() bool { return len(lines(t, file)) == 2 }, patience, pause)
	p.signal(syscall.SIGTERM)
	require.Eventually(t, func() bool { return len(lines(t, file)) == 4 }, patience, pause, "both got the signal")
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("go\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	p.ended(143, "interrupted by SIGTERM")
	require.Equal(t, 2, s.ChildCount(elements))
	require.LessOrEqual(t, s.ChildCount("/q/zkqueue/dead"), 0)
	require.Zero(t, s.ChildCount("/q/zkqueue/claims"))
	again := run(t, "queue", "receive", "/q", "--servers", s.addr, "--", "sh", "-c", `echo "$MENAGERIE_VALUE $MENAGERIE_ATTEMPT"`)
	again.succeeded()
	require.Equal(t, "bad 1\n", again.stdout.String(), "the last attempt does not count")
}

func TestAcceptance173ASecondSignalEndsCMDAtOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.puts(t, "x")
	p, file := s.work(t, `trap '' TERM INT; echo begun >>"$0"; while :; do sleep 1; done`)
	require.Eventually(t, func() bool { return len(lines(t, file)) == 1 }, patience, pause)
	p.signal(syscall.SIGTERM)
	time.Sleep(300 * time.Millisecond)
	require.Equal(t, 1, s.ChildCount("/q/zkqueue/claims"), "it goes on")
	began := time.Now()
	p.signal(syscall.SIGTERM)
	p.ended(143, "interrupted by SIGTERM")
	require.Less(t, time.Since(began), 10*time.Second)
	require.Equal(t, 1, s.ChildCount(elements))
	require.Zero(t, s.ChildCount("/q/zkqueue/claims"))
}

func TestAcceptance173CMDThatDoesNotEndInTimeIsEnded(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.puts(t, "x")
	p, file := s.work(t, `echo begun >>"$0"; exec sleep 600`, "--drain", "100ms")
	require.Eventually(t, func() bool { return len(lines(t, file)) == 1 }, patience, pause)
	p.signal(syscall.SIGHUP)
	require.Equal(t, 129, p.wait())
	require.Equal(t, 1, s.ChildCount(elements))
}

func TestAcceptance173QueueWorkGoesOnAfterALossAndTheDeathOfAnother(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.puts(t, "x")
	killed, first := s.work(t, `echo begun >>"$0"; exec sleep 600`, "--timeout", "1s")
	require.Eventually(t, func() bool { return len(lines(t, first)) == 1 }, patience, pause)
	p, file := s.work(t, `echo "$MENAGERIE_ATTEMPT" >>"$0"`, "--timeout", "1s")
	killed.signal(os.Kill)
	killed.wait()
	require.Eventually(t, func() bool { return len(lines(t, file)) == 1 && s.ChildCount(elements) == 0 }, patience, pause)
	require.Equal(t, []string{"2"}, lines(t, file))
	for _, z := range s.Sessions() {
		s.Expire(z.ID)
	}
	s.puts(t, "y")
	require.Eventually(t, func() bool { return len(lines(t, file)) == 2 && s.ChildCount(elements) == 0 }, patience, pause)
	p.signal(os.Interrupt)
	p.ended(130)
}

// A CMD that has gone is no failure of the elements: none of them becomes a dead letter, or has an attempt less.
func TestAcceptance173ACMDThatIsGoneEndsTheCommand(t *testing.T) {
	t.Parallel()
	for code, spoil := range map[int]func(string) error{
		exitNotFound: os.Remove, exitCannotRun: func(file string) error { return os.Chmod(file, 0o600) },
	} {
		s := startServer(t)
		program := filepath.Join(t.TempDir(), "program")
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nexit 0\n"), 0o700))
		s.puts(t, "x")
		p := start(t, "queue", "work", "/q", "-n", "2", "--max-attempts", "1", "--servers", s.addr, "--", program)
		require.Eventually(t, func() bool { return s.ChildCount(elements) == 0 }, patience, pause)
		require.NoError(t, spoil(program))
		s.puts(t, "y", "z")
		p.ended(code, program)
		require.Equal(t, 2, s.ChildCount(elements))
		require.LessOrEqual(t, s.ChildCount("/q/zkqueue/dead"), 0)
		require.Zero(t, s.ChildCount("/q/zkqueue/claims"))
	}
}

// The end of the command is no failure of an element, also when this was its last attempt.
func TestAcceptance173ASignalInTheLastAttemptMakesNoDeadLetter(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.puts(t, "x")
	for range 2 {
		p, file := s.work(t, `echo begun >>"$0"; exec sleep 600`, "--max-attempts", "1")
		require.Eventually(t, func() bool { return len(lines(t, file)) == 1 }, patience, pause)
		p.signal(syscall.SIGTERM)
		p.ended(143)
		require.Equal(t, 1, s.ChildCount(elements))
		require.LessOrEqual(t, s.ChildCount("/q/zkqueue/dead"), 0)
	}
}

func TestAcceptance173WrongCommandLinesOfWorkAndDeadLetters(t *testing.T) {
	t.Parallel()
	for args, text := range map[string]string{
		"work /q": "CMD is missing, want: menagerie queue work PATH -- CMD", "work /q sh -c true": "put -- in front", "work /q -n 0 -- true": "whole number", "work /q --max-attempts 0 -- true": "whole number",
		"work /q --back-off 1m --max-back-off 1s -- true": "shorter than --back-off", "dead": "PATH is missing", "dead /q x": "", "redrive": "PATH is missing",
		"redrive /q a b": `found "b" too`, "dead q": "does not start with a slash",
	} {
		run(t, append([]string{"queue"}, strings.Fields(args)...)...).failed(exitUsage, text)
	}
	run(t, "queue", "work", "/q", "--", "/no/such/program").failed(exitNotFound)
	s := startServer(t)
	for _, sub := range []string{"dead", "redrive"} {
		run(t, "queue", sub, "/none", "--servers", s.addr).failed(exitNoSuchPath, "/none does not exist")
	}
	run(t, "barrier", "/b", "--parties", "1", "--servers", s.addr).succeeded()
	for _, args := range [][]string{{"dead", "/b"}, {"redrive", "/b"}, {"work", "/b", "--", "true"}} {
		run(t, append([]string{"queue", "--servers", s.addr}, args...)...).failed(exitUsage, "the path is that of a zkbarrier")
	}
	s.puts(t, "x")
	run(t, "queue", "dead", "/q", "--servers", s.addr).succeeded()
	asJSON := run(t, "queue", "dead", "/q", "--json", "--servers", s.addr)
	asJSON.succeeded()
	require.Equal(t, "[]\n", asJSON.stdout.String())
	run(t, "queue", "work", "/q", "--capacity", "3", "--servers", s.addr, "--", "true").failed(exitUsage, "capacity")
}
