package ensemble

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// enterNetwork puts the thread that calls it into a new network namespace, for good.
func enterNetwork() error {
	err := syscall.Unshare(syscall.CLONE_NEWNET)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("ensemble: %w: %w", ErrNoNetwork, err)
	}
	if err != nil {
		return fmt.Errorf("ensemble: %w", err)
	}
	return nil
}

// ownNetwork names the network namespace of the thread that calls it, for others.
func ownNetwork() string {
	return fmt.Sprintf("/proc/%d/task/%d/ns/net", os.Getpid(), syscall.Gettid())
}

// forwardPackets lets packets pass through the namespace of the thread that calls it. The kernel shows each
// thread the settings of its own.
func forwardPackets() error {
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644)
}
