package access

import (
	"encoding/binary"
	"net"
	"strconv"
	"strings"

	"github.com/go-menagerie/menagerie/zktest/internal/jvm"
)

// IPMatches compares an address with "addr" or "addr/bits" of an ACL.
func IPMatches(addr, want string) bool {
	have, ok := parseV4(addr)
	if !ok {
		return false
	}
	block, bits, ok := parseBlock(want)
	return ok && (have^block)>>(32-bits) == 0
}

// parseBlock parses "addr" or "addr/bits". The scheme knows IPv4 only, in the real server too: an IPv6
// address is not valid in an ACL, and who connects from one is granted nothing by this scheme.
func parseBlock(s string) (addr uint64, bits int, ok bool) {
	host, tail, masked := strings.Cut(s, "/")
	if addr, ok = parseV4(host); !ok || !masked {
		return addr, 32, ok
	}
	n, err := jvm.ParseInt(tail)
	return addr, int(n), err == nil && n >= 0 && n <= 32
}

// parseV4 parses four numbers as the JVM does, which takes leading zeros and plus signs.
func parseV4(s string) (uint64, bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return 0, false
	}
	var addr uint64
	for _, p := range parts {
		n, err := jvm.ParseInt(p)
		if err != nil || n < 0 || n > 255 {
			return 0, false
		}
		addr = addr<<8 | uint64(n)
	}
	return addr, true
}

// HostAddress writes an address as the JVM does: IPv6 without leaving out groups of zeros.
func HostAddress(ip net.IP) string {
	if v4 := ip.To4(); v4 != nil {
		return v4.String()
	}
	groups := make([]string, 0, 8)
	for i := 0; i+1 < len(ip); i += 2 {
		groups = append(groups, strconv.FormatUint(uint64(binary.BigEndian.Uint16(ip[i:])), 16))
	}
	return strings.Join(groups, ":")
}
