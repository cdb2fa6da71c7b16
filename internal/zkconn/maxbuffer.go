package zkconn

import (
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/errs"
)

// A server does not answer a request that is longer than its jute.maxbuffer: it closes the connection. The request would
// be sent again for ever, and each time cost all users of the session their connection. So the client remembers which
// requests were on their way when a server closed a connection. Some cuts in a row are enough, if no request as long was
// ever answered. The same is true of a request that the link does not take within a third of the session timeout.

const (
	shortestCut = 4 << 10     // bytes; no server is set up to take less than this
	about1KB    = 1 << 10     // by which requests for the same may differ
	enoughCuts  = 3           // after so many the request is not sent any more
	cutsLast    = time.Minute // then it is sent once more: the servers may have been set up again
)

// maxBuffer is what a client knows of the servers' jute.maxbuffer.
type maxBuffer struct {
	mu     sync.Mutex
	passed int       // the longest request that a server has answered, in bytes
	cut    int       // the shortest one that may be too long
	cuts   int       // how often a server closed the connection when cut or more bytes were on their way
	last   time.Time // of these cuts
}

// answered notes that a server has answered a request of n bytes.
func (m *maxBuffer) answered(n int) {
	if n < shortestCut {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.passed = max(m.passed, n)
	if m.passed >= m.cut {
		m.cut, m.cuts = 0, 0
	}
}

// closed notes that a server has closed a connection on which the longest request without an answer had n bytes.
func (m *maxBuffer) closed(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n < shortestCut || n <= m.passed+about1KB {
		return
	}
	if m.cuts == 0 || n < m.cut {
		m.cut, m.cuts = n, 0 // longer requests say nothing of this one
	}
	m.cuts++
	m.last = time.Now()
}

// late notes that a link has not taken a request of n bytes in time. That one as long was answered before, perhaps over another
// link, says nothing of this one.
func (m *maxBuffer) late(n int) {
	if n < shortestCut { // the link was cut, and says nothing of longer ones
		return
	}
	m.mu.Lock()
	m.passed = min(m.passed, n-about1KB-1)
	m.mu.Unlock()
	m.closed(n)
}

// refuse returns an error if a request of n bytes should not be sent. Nothing of it is applied then. Those that
// were cut before were read by no server; and a caller that sends a request again has found out what became of the last.
func (m *maxBuffer) refuse(n int) error {
	if n < shortestCut {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cuts < enoughCuts || n < m.cut {
		return nil
	}
	if time.Since(m.last) >= cutsLast {
		m.cuts = enoughCuts - 1
		return nil
	}
	return errs.Misuse("a request of %d bytes has cut the connection %d times. Either it is longer than the jute.maxbuffer of the servers: "+
		"raise that on every server; or the link takes too long for it: raise WithTimeout; or store less", n, m.cuts)
}
