package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine describes this machine, for a report.
func Machine() string {
	name := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s", name, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
}

// ServerVersion asks the first of the servers that answers for its version. It is "unknown version" if none tells.
func ServerVersion(ctx context.Context, servers string, secured Secured) string {
	addresses, _ := splitServers(servers)
	for _, address := range addresses {
		if v, err := versionOf(ctx, address, secured); err == nil {
			return v
		}
	}
	return "unknown version"
}

// versionOf reads the first line of the four-letter word srvr, "Zookeeper version: 3.8.0-..., built on ...".
func versionOf(ctx context.Context, address string, secured Secured) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := Site{Slice: Slice{Secured: secured}, Meter: &Meter{}}.Dial(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	if _, err := c.Write([]byte("srvr")); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	version, ok := strings.CutPrefix(line, "Zookeeper version: ")
	if !ok {
		return "", fmt.Errorf("bench: no version in %q: %w", line, err)
	}
	version, _, _ = strings.Cut(version, "-")
	version, _, _ = strings.Cut(version, ",")
	return "ZooKeeper " + strings.TrimSpace(version), nil
}
