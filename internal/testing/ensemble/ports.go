package ensemble

import (
	"errors"
	"net"

	"github.com/go-menagerie/menagerie/internal/testing/loopback"
)

// errPortTaken is returned when a server could not listen because another process has its port.
var errPortTaken = errors.New("a port was taken by another process")

// reservation is a set of ports that nobody else can listen on until it is released.
type reservation struct {
	numbers   []int
	listeners []net.Listener
}

// reservePorts finds n free ports.
func reservePorts(n int) (*reservation, error) {
	r := &reservation{}
	for range n {
		l, err := loopback.Listen()
		if err != nil {
			r.release()
			return nil, err
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
