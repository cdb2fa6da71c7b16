package ensemble

import (
	"context"
	_ "embed" // SetSequence.java
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// setSequence is the program that changes a server's data, by means of ZooKeeper's own classes.
//
//go:embed SetSequence.java
var setSequence []byte

// PatchSequence sets the sequence counter of the node at path in the data of all servers, so that the
// next sequential child that is created there gets the number n. The servers must be stopped.
// Sessions and ephemeral nodes survive it. On error the data of some servers may have changed.
//
// ZooKeeper counts in 32 bits and never resets the counter of a node, so this is how a test gets to
// the end of the numbers without creating two thousand million nodes.
func (e *Ensemble) PatchSequence(ctx context.Context, path string, n int32) error {
	return patch(ctx, e.servers, path, n)
}

// SetSequence stops all servers, does what [Ensemble.PatchSequence] does, and starts them again.
// Clients see a disconnect of some seconds.
func (e *Ensemble) SetSequence(ctx context.Context, path string, n int32) error {
	if err := e.StopServers(); err != nil {
		return err
	}
	return errors.Join(e.PatchSequence(ctx, path, n), e.StartServers(ctx)) // running again even if not patched
}

// PatchSequence is [Ensemble.PatchSequence] for one server. In an ensemble of three it makes the
// server's state differ from that of the others, which ZooKeeper does not notice or repair.
func (s *Server) PatchSequence(ctx context.Context, path string, n int32) error {
	return patch(ctx, []*Server{s}, path, n)
}

func patch(ctx context.Context, servers []*Server, path string, n int32) error {
	dirs := make([]string, len(servers))
	for i, s := range servers {
		if s.running() != nil {
			return s.fail(fmt.Errorf("patch the sequence of %s: %w", path, errRunning))
		}
		dirs[i] = s.dataDir()
	}
	in := servers[0].in
	if err := in.checkCompiler(); err != nil {
		return err
	}
	// Java runs a single source file without compiling it first, but wants it in a file.
	source, err := os.MkdirTemp("", "zk-sequence-")
	if err != nil {
		return fmt.Errorf("ensemble: %w", err)
	}
	defer os.RemoveAll(source)
	file := filepath.Join(source, "SetSequence.java")
	if err := os.WriteFile(file, setSequence, 0o644); err != nil {
		return fmt.Errorf("ensemble: %w", err)
	}
	args := append([]string{
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
		"-Dzookeeper.digest.enabled=false", // see the program
		"-cp", in.classPath, file,
		path, strconv.FormatInt(int64(n), 10)}, dirs...)
	out, err := exec.CommandContext(ctx, in.java, args...).CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("ensemble: patch the sequence of %s: %s: %w", path, lastLines(string(out), 1), err)
	}
	return nil
}
