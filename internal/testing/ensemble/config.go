package ensemble

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-menagerie/menagerie/internal/testing/loopback"
)

// Config describes an ensemble. The zero value is one server with short session timeouts.
type Config struct {
	// Servers is the number of servers: 1 (the default, standalone) or 3.
	Servers int

	// Tick is ZooKeeper's tickTime, by default 500 ms. The shortest session timeout is two ticks.
	Tick time.Duration

	// SyncLimit is for how many ticks a follower or the leader waits for the other, by default 10: so that the
	// ensemble has replaced a frozen leader after five seconds.
	SyncLimit int

	// MaxSessionTimeout is the longest session timeout that the servers grant, by default 60 s.
	MaxSessionTimeout time.Duration

	// ForceSync makes the servers wait for the disk before they acknowledge a write. Tests do
	// without it: killing a process loses nothing that it has written, only a power cut does.
	ForceSync bool

	// HeapMB is the largest Java heap of one server in megabytes, by default 512.
	HeapMB int

	// Properties are more Java system properties, for what a server does not take from its
	// configuration file or does by default otherwise: "znode.container.checkIntervalMs" for example,
	// or "zookeeper.extendedTypesEnabled".
	Properties map[string]string

	// TLS, if not nil, gives every server a second port, for TLS: see [Server.SecureAddr].
	TLS *TLS

	// Networks puts each server into a network namespace of its own, and their clients (see
	// [Ensemble.StartClient]) into another, so that what one sends to another can be cut off
	// ([Ensemble.Cut]). It needs what [CanCut] looks for.
	Networks bool

	_ struct{} // fields will be added: name them
}

// TLS are the files of servers that speak it, in PEM form.
type TLS struct {
	// KeyFile has the server's key (PKCS #8) and, behind it, its certificate.
	KeyFile string

	// TrustFile has the authorities of the clients' certificates.
	TrustFile string

	// ClientAuth has the servers refuse clients without a certificate.
	ClientAuth bool
}

func (c Config) withDefaults() (Config, error) {
	if c.Servers == 0 {
		c.Servers = 1
	}
	if c.Servers != 1 && c.Servers != 3 {
		return c, fmt.Errorf("ensemble: %d servers: only 1 and 3 are supported", c.Servers)
	}
	if c.Tick == 0 {
		c.Tick = 500 * time.Millisecond
	}
	if c.Tick < time.Millisecond {
		return c, fmt.Errorf("ensemble: a tick of %v is shorter than one millisecond", c.Tick)
	}
	if c.SyncLimit == 0 {
		c.SyncLimit = 10
	}
	if c.SyncLimit < 0 {
		return c, fmt.Errorf("ensemble: a sync limit of %d ticks", c.SyncLimit)
	}
	if c.MaxSessionTimeout == 0 {
		c.MaxSessionTimeout = time.Minute
	}
	if c.MaxSessionTimeout < 2*c.Tick {
		return c, fmt.Errorf("ensemble: a session timeout of at most %v is below the shortest one, two ticks of %v",
			c.MaxSessionTimeout, c.Tick)
	}
	if c.HeapMB == 0 {
		c.HeapMB = 512
	}
	if c.HeapMB < 0 {
		return c, fmt.Errorf("ensemble: a heap of %d megabytes", c.HeapMB)
	}
	for key := range c.Properties {
		if key == "" || strings.Contains(key, "=") {
			return c, fmt.Errorf("ensemble: %q is not the name of a system property", key)
		}
	}
	return c, nil
}

// initLimitTicks is how long, in ticks, a follower may take to join. That is generous, because
// it competes with the start of three virtual machines.
const initLimitTicks = 60

// file renders the zoo.cfg of one server. Keys that ZooKeeper does not know itself become the system
// properties zookeeper.KEY.
func (c Config) file(id int, dataDir string, ports []int) string {
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "%s=%v\n", key, value) }
	line("tickTime", c.Tick.Milliseconds())
	line("initLimit", initLimitTicks)
	line("syncLimit", c.SyncLimit)
	line("minSessionTimeout", 2*c.Tick.Milliseconds())
	line("maxSessionTimeout", c.MaxSessionTimeout.Milliseconds())
	line("dataDir", filepath.ToSlash(dataDir)) // a backslash is an escape in a properties file
	line("clientPortAddress", c.host(id))
	line("clientPort", clientPort(ports, id))
	line("maxClientCnxns", 0) // every client of a test has the same address
	line("admin.enableServer", false)
	line("4lw.commands.whitelist", "*")
	line("preAllocSize", 1024) // kilobytes; the default would reserve 64 MB per log file
	line("forceSync", map[bool]string{true: "yes", false: "no"}[c.ForceSync])
	if c.TLS != nil {
		line("secureClientPort", securePort(ports, id))
		line("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory")
		line("ssl.keyStore.location", filepath.ToSlash(c.TLS.KeyFile))
		line("ssl.keyStore.type", "PEM")
		line("ssl.trustStore.location", filepath.ToSlash(c.TLS.TrustFile))
		line("ssl.trustStore.type", "PEM")
		line("ssl.clientAuth", map[bool]string{true: "need", false: "none"}[c.TLS.ClientAuth])
		line("authProvider.x509", "org.apache.zookeeper.server.auth.X509AuthenticationProvider")
	}
	if c.Servers > 1 {
		for i := 1; i <= c.Servers; i++ {
			line(fmt.Sprintf("server.%d", i),
				fmt.Sprintf("%s:%d:%d", c.host(i), quorumPort(ports, i), electionPort(ports, i)))
		}
	}
	return b.String()
}

// properties returns the options of the Java machine for Properties.
func (c Config) properties() []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(c.Properties)) {
		out = append(out, "-D"+key+"="+c.Properties[key])
	}
	return out
}

// Every server owns four neighbouring entries in the list of ports.
const portsPerServer = 4

func clientPort(ports []int, id int) int   { return ports[(id-1)*portsPerServer] }
func quorumPort(ports []int, id int) int   { return ports[(id-1)*portsPerServer+1] }
func electionPort(ports []int, id int) int { return ports[(id-1)*portsPerServer+2] }
func securePort(ports []int, id int) int   { return ports[(id-1)*portsPerServer+3] }

// host is where a server listens.
func (c Config) host(id int) string {
	if c.Networks {
		return address(id)
	}
	return loopback.Host
}
