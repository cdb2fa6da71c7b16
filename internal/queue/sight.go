package queue

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/go-menagerie/menagerie/internal/node"
	"github.com/go-menagerie/menagerie/internal/wording"
	"github.com/go-menagerie/menagerie/internal/zkconn"
)

// sight is what a waiter knows of its place in the line, for the error of a wait that ends, and for tracers. All but one read of the
// node at the head comes from what the waiter has asked anyway.
type sight struct {
	epoch *zkconn.Epoch
	dir   string

	mu      sync.Mutex
	behind  int    // one more than how many entries were ahead when that was first known; 0 if it was not
	known   bool   // else the waiter has guessed who is ahead
	ahead   int    // entries, at the newest listing or since
	holders int    // how many of them hold
	head    string // the first of them, which holds
	fewer   bool   // some of ahead may have left since
	asked   *zkconn.Call[zkconn.Content]
	when    time.Time // of asked
}

// listed notes what a listing shows.
func (s *sight) listed(ahead []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known = len(ahead) > 0; !s.known {
		return
	}
	s.ahead, s.holders, s.fewer = len(ahead), holding(ahead), false
	s.behind = cmp.Or(s.behind, s.ahead+1)
	s.head = strings.Clone(ahead[0].Name) // a part of the listing's text, which must not be kept
}

// queued notes that n entries are ahead, none of which is in the way.
func (s *sight) queued(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = cmp.Or(s.behind, n+1)
}

// place is how many entries are ahead; false if that is not known now.
func (s *sight) place() (ahead int, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead, s.known && !s.fewer
}

// read is what the node at the head says; false if that was not asked, or is not answered.
func (s *sight) read() (c node.Content, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked == nil || !s.asked.Answered() {
		return c, false
	}
	got, err := s.asked.Result()
	if err != nil {
		return c, false
	}
	return node.Decode(got.Data), true
}

// departed notes that some have left. all says that left are all who are ahead now.
func (s *sight) departed(left []Entry, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fewer = !all || len(left) == 0; !s.fewer {
		s.known, s.ahead, s.holders, s.head = true, len(left), holding(left), strings.Clone(left[0].Name)
	}
}

// holding is how many of the entries hold, as far as that is plain: the readers at the head, or else its first entry. How many
// permits there are is not known here; 0 if they are permits.
func holding(ahead []Entry) (n int) {
	for n < len(ahead) && ahead[n].Kind == KindRead {
		n++
	}
	if n == 0 && ahead[0].Kind != KindPermit {
		return 1
	}
	return n
}

// ask reads the node at the head, unless that was done within the last second: of all who give up at that time one asks. It
// sends the request and waits for nothing.
func (s *sight) ask() *zkconn.Call[zkconn.Content] {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && (s.asked == nil || now.Sub(s.when) >= time.Second) {
		s.asked, s.when = zkconn.Start(s.epoch, zkconn.ReadData(s.dir+"/"+s.head)), now
	}
	return s.asked
}

// standing says what the ticket waits for: "2nd in line, held by web-3 pid 4711 for 12s". It waits for the answer for limit at most.
func (s *sight) standing(limit time.Duration) string {
	call := s.ask()
	if call == nil {
		return ""
	}
	node.Settle(s.epoch, call.Done(), limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	if s.holders > 0 {
		place := wording.InLine(s.ahead - s.holders + 1)
		if s.fewer {
			place += " or nearer"
		}
		parts = append(parts, place)
	}
	if call.Answered() {
		if c, err := call.Result(); err == nil {
			owner := node.Decode(c.Data)
			since := owner.Since
			if since.IsZero() {
				since = time.UnixMilli(c.Stat.Ctime)
			}
			done := "held"
			if c.Stat.EphemeralOwner == s.epoch.ID() { // it waits for another goroutine of this process, or for itself
				owner.Owner = node.Owner{Name: "this process"}
				if head, _ := ParseEntry(s.head); head.Kind == KindRead {
					done = "held for reading"
				}
			}
			parts = append(parts, wording.By(done, owner.Owner, c.Stat.EphemeralOwner, since, time.Now(), max(s.holders-1, 0)))
		}
	}
	return strings.Join(parts, ", ")
}
