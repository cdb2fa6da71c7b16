package zkconn

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

// hosts decides, for one epoch, which server is dialled next, and when.
// It is both the HostProvider and the dialer of the client library, whose loop alone uses the fields.
//
// The library's own provider resolves names once for its life, and waits a second before it dials a lone
// server again. Here attempts go in rounds. A round begins with a look-up of all names, and tries every address once, in
// random order. The first attempt at every address comes at once, and only then do pauses begin. The next round
// begins after the last address, and after each handshake: then what the look-up found may be old.
type hosts struct {
	epoch *Epoch
	names *resolver
	owner owner         // of the connections
	quit  chan struct{} // closed when the client library was asked to end

	round []target // what this round has still to try
	size  int      // how many addresses there are to try in a round
	last  target   // the newest one that was dialled
}

// Init implements zk.HostProvider. The servers are those of the configuration.
func (h *hosts) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.epoch.cfg.Servers) }

// Next implements zk.HostProvider. The client library calls it with a lock held, so it must not wait. If the second result
// is true, the library fails what is queued and sleeps a second; but only then does it look whether it was closed.
// So it is true only after shutdown has closed quit.
func (h *hosts) Next() (string, bool) {
	if len(h.round) == 0 {
		return h.epoch.cfg.Servers[0], closed(h.quit) // dial begins a round, and dials no server
	}
	return h.round[0].server, closed(h.quit)
}

// Connected implements zk.HostProvider: a handshake has succeeded. That alone does not end the back-off: see dialPace.
func (h *hosts) Connected() { h.round = nil }

// errRound is what the client library hears of a dial that has only begun a round. It calls Next again,
// which returns the server that will be dialled.
var errRound = errors.New("a round of attempts begins")

// dial is the client library's Dialer. It runs in the library's own loop, which holds no lock then.
func (h *hosts) dial(string, string, time.Duration) (net.Conn, error) {
	e := h.epoch
	receiveLittle(e.conn)
	e.sendBuffer.owned(e.conn, false) // before anything that takes time: Conn may wait for it
	if e.alive.Err() == nil && len(h.round) == 0 {
		return nil, h.begin()
	}
	if e.alive.Err() == nil {
		h.pause()
	}
	if e.alive.Err() != nil {
		<-h.quit // see shutdown
		return nil, ErrOver
	}
	h.last, h.round = h.round[0], h.round[1:]
	return h.attempt(h.last, h.limit())
}

// begin looks the names up, and puts what there is to try in order. The server that was
// dialled last comes last: it is the one that was just lost, or has just failed.
func (h *hosts) begin() error {
	e := h.epoch
	e.pace.round()
	round, err := h.names.find(e.alive.Done(), h.limit())
	if len(round) == 0 {
		h.size = h.Len()
		h.pause()
		return err
	}
	rand.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
	if i := slices.IndexFunc(round, func(t target) bool { return t.address == h.last.address }); i >= 0 {
		end := len(round) - 1
		round[i], round[end] = round[end], round[i]
	}
	later := map[string]bool{}
	for i, t := range slices.Backward(round) {
		round[i].more, later[t.server] = later[t.server], true
	}
	h.round, h.size = round, max(len(round), h.Len()) // a server whose address is not known yet counts as one
	e.dials.round(round, h.size)
	return errRound
}

// pause waits for the back-off before another attempt.
func (h *hosts) pause() {
	e := h.epoch
	if d := e.pace.delay(h.size, e.timeout()); d > 0 {
		sleep(d, e.alive.Done())
	}
}

// limit is the time for each step of the present attempt. While there is a session that could be kept, the
// attempts of one round must not take longer together than the session lives. But a link that was
// slow before is slow: there a shorter limit would only waste the time, up to a third of the session timeout.
func (h *hosts) limit() time.Duration {
	e, n := h.epoch, max(h.size, h.Len())
	if e.ID() == 0 {
		return attemptLimit(e.timeout(), n, e.pace.slowRounds(), mostAttempt(e.timeout()))
	}
	remaining, trip := e.outlook()
	limit := attemptLimit(e.timeout(), n, e.pace.slowRounds(), remaining/time.Duration(n))
	return max(limit, min(3*trip/2, e.timeout()/3))
}

// attempt dials t, with limit for each step.
func (h *hosts) attempt(t target, limit time.Duration) (net.Conn, error) {
	e := h.epoch
	e.dials.trying(t.String(), "dialing "+t.String()+": no answer for", guessDark, time.Now())
	began := time.Now()
	raw, err := e.dial(e.alive, t, limit)
	if err != nil {
		if time.Since(began) >= limit { // whatever the dialer says
			e.pace.tooLate()
		}
		if e.alive.Err() == nil { // else the end of the epoch may be why it failed
			e.dials.failed(t, diagnoseDial(err, limit))
		}
		return nil, err
	}
	e.dials.trying(t.String(), "connected to "+t.String()+": no answer for", guessSilent(isSecured(raw)), time.Now())
	w := newWire(raw, &e.session, h.owner, t.String(), time.Now().Add(limit))
	w.target, w.limit = t, limit
	e.mu.Lock()
	previous := e.dialled
	e.dialled = w
	over := e.alive.Err() != nil // under mu: either this sees the end of alive, or kill, which ends it under mu, sees w
	e.mu.Unlock()
	if previous != nil {
		previous.Close() // the client library does not close the connection of an expired session
	}
	if over {
		w.Close()
		return nil, ErrOver
	}
	return w, nil
}

// dial connects to t, with TLS if the configuration wants that. Each of the two steps has limit.
func (s *shared) dial(ctx context.Context, t target, limit time.Duration) (net.Conn, error) {
	dialing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := s.cfg.Dial(dialing, "tcp", t.address)
	if err != nil || s.cfg.Secure == nil {
		return raw, err
	}
	securing, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := s.cfg.Secure(securing, raw, t.host())
	if err != nil {
		raw.Close()
	}
	return conn, err
}

// attemptLimit is the time for each step of an attempt to connect: the dial, TLS, the handshake, the credentials. At first
// every server gets two attempts within the session timeout: a dead server must not cost a session. It doubles with
// each round in which it was too short for a server, and no server could be used, up to most.
func attemptLimit(timeout time.Duration, servers, round int, most time.Duration) time.Duration {
	first := min(max(timeout/time.Duration(2*servers), 200*time.Millisecond), 5*time.Second)
	return max(first, min(first<<min(round, 10), most))
}

// mostAttempt is the greatest limit of an attempt that no session depends on. A session whose handshake
// takes longer than the session timeout is over when it begins. The servers may grant more than was asked for.
func mostAttempt(timeout time.Duration) time.Duration { return max(timeout, 5*time.Second) }
