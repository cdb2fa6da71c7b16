package bench

import (
	"net"
	"strings"
)

// splitServers separates a connect string into what the plain client library wants:
// addresses with ports, and the chroot, which it does not know of.
func splitServers(s string) (addresses []string, chroot string) {
	if i := strings.IndexByte(s, '/'); i >= 0 {
		s, chroot = s[:i], strings.TrimSuffix(s[i:], "/")
	}
	for entry := range strings.SplitSeq(s, ",") {
		entry = strings.TrimSpace(entry)
		if _, _, err := net.SplitHostPort(entry); err != nil {
			entry = net.JoinHostPort(strings.Trim(entry, "[]"), "2181")
		}
		addresses = append(addresses, entry)
	}
	return addresses, chroot
}
