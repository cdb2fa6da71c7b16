package session

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
)

const defaultPort = "2181"

// ParseConnectString reads a ZooKeeper connect string: "host:port,host:port/chroot".
// The port may be left out (it is 2181 then). An IPv6 address stands in brackets, or
// bare if it has no port. The servers are returned in the form that net.Dial takes,
// in the order given. The chroot is "" if there is none. Errors wrap errs.ErrMisuse.
func ParseConnectString(s string) (servers []string, chroot string, err error) {
	if strings.Contains(s, "://") {
		return nil, "", badConnectString(s, `has a scheme: write "host:port,host:port/chroot"`)
	}
	hosts, chroot := strings.TrimSpace(s), ""
	if slash := strings.IndexByte(hosts, '/'); slash >= 0 {
		hosts, chroot = hosts[:slash], hosts[slash:]
	}
	if why := chrootProblem(chroot); why != "" {
		return nil, "", badConnectString(s, why)
	}
	if strings.TrimSpace(hosts) == "" {
		return nil, "", badConnectString(s, `names no server: write "host:port", several separated by commas`)
	}
	for entry := range strings.SplitSeq(hosts, ",") {
		server, why := parseServer(strings.TrimSpace(entry))
		if why != "" {
			return nil, "", badConnectString(s, why)
		}
		servers = append(servers, server)
	}
	if chroot == "/" {
		chroot = ""
	}
	return servers, chroot, nil
}

// chrootProblem returns what is wrong with the part from the first slash on. A comma would be legal
// in the name of a znode. But here it nearly always means that the chroot was written after every
// server. Without this check nobody would notice that all later servers had become part of the name.
func chrootProblem(chroot string) string {
	if chroot == "" || chroot == "/" {
		return ""
	}
	if strings.Contains(chroot, ",") {
		return `has a comma after the first "/": write the chroot once, after the last server`
	}
	if why := node.PathProblem(chroot); why != "" {
		return "has a bad chroot, which " + why
	}
	return ""
}

// parseServer turns one entry into host:port, or says what is wrong with it.
func parseServer(entry string) (server, why string) {
	host, port := entry, defaultPort
	switch {
	case entry == "":
		return "", "has an empty entry: remove the extra comma"
	case isIPv6(entry):
		// Without brackets all of it is taken as the address, unless its last group looks like a port.
		if address, last := withPort(entry); last != "" {
			return "", fmt.Sprintf("has the address %s, which may end with a port: write [%s]:%s, or [%s] without one", errs.Quote(entry), address, last, entry)
		}
	case entry[0] == '[':
		address, rest, closed := strings.Cut(entry[1:], "]")
		if !closed || !isIPv6(address) {
			return "", fmt.Sprintf("has the bad IPv6 address %s: write [address]:port", errs.Quote(entry))
		}
		if rest != "" && rest[0] != ':' {
			return "", fmt.Sprintf(`has %s after "]": write [address]:port`, errs.Quote(rest))
		}
		if host = address; rest != "" {
			port = rest[1:]
		}
	case strings.Count(entry, ":") > 1:
		return "", fmt.Sprintf("has the bad address %s: write host:port, or [address]:port for IPv6", errs.Quote(entry))
	default:
		if name, number, both := strings.Cut(entry, ":"); both {
			host, port = name, number
		}
		if host == "" || strings.ContainsFunc(host, notInHost) {
			return "", fmt.Sprintf("has the bad host %s: use a host name or an IP address", errs.Quote(host))
		}
	}
	// Digits only: ParseUint takes no sign, and a name such as "http" would be
	// looked up by the dialer, long after this.
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Sprintf("has the bad port %s: use a number from 1 to 65535", errs.Quote(port))
	}
	return net.JoinHostPort(host, port), ""
}

// withPort cuts a port of four digits off an IPv6 address without brackets; "" if it does not look like one.
func withPort(entry string) (address, port string) {
	cut := strings.LastIndexByte(entry, ':')
	address, port = entry[:cut], entry[cut+1:]
	if n, err := strconv.Atoi(port); err != nil || n < 1024 || !isIPv6(address) {
		return "", ""
	}
	return address, port
}

func isIPv6(s string) bool {
	address, err := netip.ParseAddr(s)
	return err == nil && address.Is6()
}

// notInHost finds only what cannot be a name, such as "user@host"
// or two hosts separated by a space. The resolver judges the rest.
func notInHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
}

func badConnectString(s, why string) error {
	return errs.Misuse("connect string %s %s", errs.Quote(s), why)
}
