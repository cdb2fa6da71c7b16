package ensemble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
)

// loopback is where all servers listen. The number, not "localhost", because Java and Go need not
// agree on which of a name's addresses they use.
const loopback = "127.0.0.1"

// dynamicPorts is where IANA's range of dynamic ports begins, which every system uses that does not
// tell its own.
const dynamicPorts = 49152

// errPortTaken is returned when a server could not listen because another process has its port.
var errPortTaken = errors.New("a port was taken by another process")

// reservation is a set of ports that nobody else can listen on until it is released.
type reservation struct {
	numbers   []int
	listeners []net.Listener
}

// reservePorts finds n free ports below the range from which the system numbers outgoing
// connections. A server keeps its ports while it is down, and in that range any client's
// connection could take them from it, even one that is looking for that very server.
func reservePorts(n int) (*reservation, error) {
	return reserve(n, outgoingPorts())
}

// reserve takes the ports from the upper half of those below limit, or whatever the system gives
// when next to nothing is below it.
func reserve(n, limit int) (*reservation, error) {
	const privileged = 1024
	r := &reservation{}
	low := limit / 2
	for tries := 0; len(r.numbers) < n; tries++ {
		port := 0
		if low > privileged && tries < 100*n {
			port = low + rand.IntN(limit-low)
		}
		l, err := net.Listen("tcp", loopbackAddr(port))
		if err != nil {
			if port != 0 {
				continue
			}
			r.release()
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		r.listeners = append(r.listeners, l)
		r.numbers = append(r.numbers, l.Addr().(*net.TCPAddr).Port)
	}
	return r, nil
}

// release lets others listen on the ports. It is idempotent.
func (r *reservation) release() {
	for _, l := range r.listeners {
		l.Close()
	}
	r.listeners = nil
}

// outgoingPorts returns the first port that the system may give to an outgoing connection.
func outgoingPorts() int {
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
