package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/loopback"
)

// server is a program that serves a rival until it is stopped.
type server struct {
	in   io.Closer
	cmd  *exec.Cmd
	log  bytes.Buffer // read only once the program has ended
	once sync.Once
}

// A shell starts the program and waits for the end of its own input. That comes when the server is stopped, and also
// when this process ends in any other way: so nothing is left behind. A Ctrl-C at the terminal is not its business.
const guard = `trap '' INT HUP; dir=$1; shift; "$@" & read -r _; kill -9 $!; wait; rm -rf "$dir"`

// startServer starts a program whose arguments may name a directory that is removed with it.
func startServer(argv func(dir string) []string) (*server, error) {
	dir, err := os.MkdirTemp("", "menagerie-rival-")
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.Command("sh", append([]string{"-c", guard, "sh", dir}, argv(dir)...)...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if s.in, err = s.cmd.StdinPipe(); err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *server) stop() {
	s.once.Do(func() {
		_ = s.in.Close()
		_ = s.cmd.Wait() // the shell's code says nothing
	})
}

// starting is how long a server may take until it answers.
const starting = 30 * time.Second

// await returns when the server answers. If it does not, it is stopped.
func (s *server) await(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := attempt(ctx, answers)
		if err == nil {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			s.stop()
			return fmt.Errorf("the server does not answer: %w\n%s", err, tail(s.log.String()))
		}
	}
}

func attempt(ctx context.Context, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return answers(ctx)
}

// tail is the end of a log, which is what a person reads.
func tail(log string) string { return log[max(0, len(log)-2000):] }

// twoPorts are addresses of this machine at which nobody listens.
func twoPorts() (string, string, error) {
	a, err := loopback.Listen()
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	b, err := loopback.Listen()
	if err != nil {
		return "", "", err
	}
	defer b.Close()
	return a.Addr().String(), b.Addr().String(), nil
}
