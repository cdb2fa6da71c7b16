package ensemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Install makes sure that this machine can run an ensemble and patch it: it installs the Debian
// packages that are missing if it runs as root and apt-get is there, and writes what apt-get prints
// to log. It does nothing if nothing is missing. Otherwise the error matches [ErrNotInstalled] and
// says what to run.
func Install(ctx context.Context, log io.Writer) error {
	err := Installed()
	var missing *missingError
	if !errors.As(err, &missing) {
		return err
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w; this process is not root", err)
	}
	apt, lookErr := exec.LookPath("apt-get")
	if lookErr != nil {
		return fmt.Errorf("%w; this machine has no apt-get", err)
	}
	if err := install(ctx, log, apt, missing.packages); err != nil {
		return err
	}
	return Installed()
}

// Installed returns nil if this machine can run an ensemble and patch it, else an error that matches
// [ErrNotInstalled] and says what to run.
func Installed() error {
	in, err := find()
	if err != nil {
		return err
	}
	return in.checkCompiler()
}

func install(ctx context.Context, log io.Writer, apt string, packages []string) error {
	// Another apt-get at work is waited for: on a new machine it is often the first boot's.
	options := []string{"-q", "-o", "DPkg::Lock::Timeout=300"}
	for _, command := range [][]string{
		{"update"},
		append([]string{"install", "-y", "--no-install-recommends"}, packages...),
	} {
		cmd := exec.CommandContext(ctx, apt, append(options[:len(options):len(options)], command...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("ensemble: apt-get %s: %w", command[0], err)
		}
	}
	return nil
}
