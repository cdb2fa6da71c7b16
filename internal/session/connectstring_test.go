package session

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/go-menagerie/menagerie/internal/errs"
	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/stretchr/testify/require"
)

func TestConnectStringsAreReadAsZooKeeperReadsThem(t *testing.T) {
	for _, c := range []struct {
		text    string
		servers []string
		chroot  string
	}{
		{"zk", []string{"zk:2181"}, ""},
		{"zk:1", []string{"zk:1"}, ""},
		{"zk:65535", []string{"zk:65535"}, ""},
		{"h1:2181,h2:2182/app/x", []string{"h1:2181", "h2:2182"}, "/app/x"},
		{"h1,h2:7,h3", []string{"h1:2181", "h2:7", "h3:2181"}, ""},
		{" h1 , h2:7 ", []string{"h1:2181", "h2:7"}, ""},
		{"h1/", []string{"h1:2181"}, ""},
		{"h1,h2 /app ", []string{"h1:2181", "h2:2181"}, "/app"},
		{"127.0.0.1:2181", []string{"127.0.0.1:2181"}, ""},
		{"::1", []string{"[::1]:2181"}, ""},
		{"[::1]", []string{"[::1]:2181"}, ""},
		{"[::1]:2182,h", []string{"[::1]:2182", "h:2181"}, ""},
		{"[fe80::1%eth0]:2182/a", []string{"[fe80::1%eth0]:2182"}, "/a"},
		{"2001:db8::5", []string{"[2001:db8::5]:2181"}, ""},
		{"::ffff:10.0.0.1", []string{"[::ffff:10.0.0.1]:2181"}, ""},
		{"my_host.example-1.org.", []string{"my_host.example-1.org.:2181"}, ""},
		{"zürich:2181", []string{"zürich:2181"}, ""},
		{"h1,h1", []string{"h1:2181", "h1:2181"}, ""},
	} {
		servers, chroot, err := ParseConnectString(c.text)
		require.NoError(t, err, "%q", c.text)
		require.Equal(t, c.servers, servers, "%q", c.text)
		require.Equal(t, c.chroot, chroot, "%q", c.text)
	}
}

func TestBadConnectStringsAreRefusedWithTheReasonAndTheFix(t *testing.T) {
	for text, want := range map[string]string{
		"":                    `names no server`,
		"  ":                  `names no server`,
		"/app":                `names no server`,
		",":                   `has an empty entry: remove the extra comma`,
		"h1,":                 `has an empty entry`,
		"h1,,h2":              `has an empty entry`,
		"h1, ,h2":             `has an empty entry`,
		"h1,/app":             `has an empty entry`,
		"h1:":                 `has the bad port "": use a number from 1 to 65535`,
		"h1:0":                `has the bad port "0"`,
		"h1:65536":            `has the bad port "65536"`,
		"h1:-1":               `has the bad port "-1"`,
		"h1:+1":               `has the bad port "+1"`,
		"h1:http":             `has the bad port "http"`,
		"h1:1_0":              `has the bad port "1_0"`,
		"h1: 2181":            `has the bad port " 2181"`,
		":2181":               `has the bad host ""`,
		"h1 h2":               `has the bad host "h1 h2"`,
		"user@h1:2181":        `has the bad host "user@h1"`,
		"h1;h2":               `has the bad host "h1;h2"`,
		"h\x00":               `has the bad host "h\x00"`,
		"zk://h1:2181":        `has a scheme: write "host:port,host:port/chroot"`,
		"a:b:c":               `has the bad address "a:b:c"`,
		"h1:2181:2182":        `has the bad address "h1:2181:2182"`,
		"::1:2181":            `has the address "::1:2181", which may end with a port: write [::1]:2181, or [::1:2181] without one`,
		"2001:db8::5:2181/a":  `has the address "2001:db8::5:2181", which may end with a port: write [2001:db8::5]:2181, or [2001:db8::5:2181] without one`,
		"[::1":                `has the bad IPv6 address "[::1"`,
		"[]:2181":             `has the bad IPv6 address "[]:2181"`,
		"[h1]:2181":           `has the bad IPv6 address "[h1]:2181"`,
		"[127.0.0.1]:2181":    `has the bad IPv6 address`,
		"[::1]2181":           `has "2181" after "]": write [address]:port`,
		"[::1]:":              `has the bad port ""`,
		"h1/app/":             `has a bad chroot, which ends with "/": remove it`,
		"h1//app":             `has a bad chroot, which has an empty name in it`,
		"h1/a/../b":           `has a bad chroot, which has the relative name ".." in it`,
		"h1/zookeeper":        `has a bad chroot, which belongs to the server itself`,
		"h1/app,h2/app":       `has a comma after the first "/": write the chroot once, after the last server`,
		"h1:2181/app,h2:2181": `has a comma after the first "/"`,
	} {
		servers, chroot, err := ParseConnectString(text)
		require.ErrorIs(t, err, errs.ErrMisuse, "%q", text)
		require.ErrorContains(t, err, want, "%q", text)
		require.Empty(t, servers)
		require.Empty(t, chroot)
	}
}

func FuzzParseConnectString(f *testing.F) {
	for _, text := range []string{"h1:2181,h2/app", "[::1]:1/", "::1", "h1,,h2", "a:b:c", "[", "]:1", "/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		servers, chroot, err := ParseConnectString(text)
		if err != nil {
			require.ErrorIs(t, err, errs.ErrMisuse)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		require.NotEmpty(t, servers)
		for _, server := range servers {
			host, port, err := net.SplitHostPort(server)
			require.NoError(t, err)
			require.NotEmpty(t, host)
			n, err := strconv.Atoi(port)
			require.NoError(t, err)
			require.True(t, n > 0 && n < 65536, port)
		}
		if chroot != "" {
			require.NoError(t, node.ValidatePath(chroot))
		}
		// What was understood is understood the same when written out in full.
		again, chroot2, err := ParseConnectString(strings.Join(servers, ",") + chroot)
		require.NoError(t, err)
		require.Equal(t, servers, again)
		require.Equal(t, chroot, chroot2)
	})
}
