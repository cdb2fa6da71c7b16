// Package loopback opens ports of this machine for servers that clients must find again at the same address.
package loopback

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// Host is where all servers listen. The number, not "localhost", because Java and Go need not
// agree on which of a name's addresses they use.
const Host = "127.0.0.1"

// dynamicPorts is where IANA's range of dynamic ports begins, which every system uses that does not
// tell its own.
const dynamicPorts = 49152

// unprivileged is the first port that not only the system's own servers may open.
const unprivileged = 1024

// Listen opens a free TCP port below the range from which the system numbers outgoing connections. A server keeps
// its port while it is down, and in that range any client's connection could take it, even one that is looking for
// that very server.
func Listen() (net.Listener, error) { return listenBelow(Outgoing()) }

// Refusing returns the address of a port at which nobody listens, nor can anybody before free is called: a connection
// of our own leaves from it. A port that was only closed would go to whoever asks for one next.
func Refusing() (addr string, free func(), err error) {
	l, err := net.Listen("tcp", Addr(0))
	if err != nil {
		return "", nil, err
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		l.Close()
		return "", nil, err
	}
	return c.LocalAddr().String(), func() { c.Close(); l.Close() }, nil
}

// Addr is the address of a port.
func Addr(port int) string { return net.JoinHostPort(Host, strconv.Itoa(port)) }

// listenBelow opens a port in the upper half of those below limit, or whatever the system gives
// when next to nothing is below it.
func listenBelow(limit int) (net.Listener, error) {
	if low := limit / 2; low >= unprivileged {
		for range 100 {
			if l, err := net.Listen("tcp", Addr(low+rand.IntN(limit-low))); err == nil {
				return l, nil
			}
		}
	}
	l, err := net.Listen("tcp", Addr(0))
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	return l, nil
}

// Outgoing returns the first port that the system may give to an outgoing connection.
func Outgoing() int {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range") // Linux only
	if err != nil {
		return dynamicPorts
	}
	var low, high int
	if _, err := fmt.Sscan(string(data), &low, &high); err != nil {
		return dynamicPorts
	}
	return low
}
