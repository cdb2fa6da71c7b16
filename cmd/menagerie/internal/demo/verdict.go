package demo

import (
	"fmt"
	"strings"

	"github.com/go-menagerie/menagerie/zksync"
)

// Result is what a demo found. The names in JSON are part of the command's interface.
type Result struct {
	Workers         int  `json:"workers"`
	Rounds          int  `json:"rounds"`
	Expected        int  `json:"expected"`
	Counter         int  `json:"counter"`
	Overlaps        int  `json:"overlaps"`
	TokensMonotonic bool `json:"tokens_monotonic"`
	Killed          int  `json:"killed"`

	// Holds and Lost are for the summary: how often the lock was granted, and how many of
	// those leases were lost by a process that lived on.
	Holds int `json:"-"`
	Lost  int `json:"-"`
}

// Problem says in one line what is wrong, or is empty if all is as it must be.
func (r Result) Problem() string {
	var wrong []string
	if r.Counter != r.Expected {
		wrong = append(wrong, fmt.Sprintf("the counter is %d, not %d", r.Counter, r.Expected))
	}
	if r.Overlaps > 0 {
		wrong = append(wrong, fmt.Sprintf("%d holds overlapped", r.Overlaps))
	}
	if !r.TokensMonotonic {
		wrong = append(wrong, "a token did not grow")
	}
	return strings.Join(wrong, ", ")
}

// hold is one grant that has not ended yet.
type hold struct {
	others  int // grants that came while this one was open
	noted   int // of them, those before its last line
	certain int // of them, those before a line after which the lease was still valid, or a write
}

// goesOn is for a line that is written only after a look at the lease, which was valid: so it was
// at the line before.
func (o *hold) goesOn() {
	o.certain = max(o.certain, o.noted)
	o.noted = o.others
}

// history replays a journal.
type history struct {
	open     map[int]*hold // by pid
	newest   zksync.Token
	ordered  bool
	holds    int
	lost     int
	overlaps int
}

// judge counts holds, overlaps and losses, and checks that tokens grew in the order of the
// grants.
//
// Two holds overlap if the later one began before the earlier one had ended for certain. What a
// process says of itself proves that it held at the line before, because it looks at its lease
// between the two; when it wrote the line it may have been asleep since that look, and lost the lease. The
// same goes for one that was killed: by the time that anybody notes its death, its session may be
// over. But whatever it wrote to the file when a later hold had begun is an overlap. A grant of
// which nothing followed, because the process was asleep and had lost it when it came to say so, says
// nothing of others either.
func judge(entries []entry) history {
	h := history{open: map[int]*hold{}, ordered: true}
	used := usedGrants(entries)
	for i, e := range entries {
		switch e.event {
		case entered:
			h.enter(e, used[i])
		case holds, wrote:
			if o := h.open[e.pid]; o != nil {
				o.goesOn()
				if e.event == wrote {
					o.certain = o.others
				}
			}
		case left:
			if o := h.open[e.pid]; o != nil {
				o.goesOn()
			}
			h.end(e.pid)
		case lost, died, killed:
			if e.event == lost {
				h.lost++
			}
			h.end(e.pid)
		}
	}
	for pid := range h.open {
		h.end(pid)
	}
	return h
}

// usedGrants are the lines with grants whose lease was still valid behind that line.
func usedGrants(entries []entry) map[int]bool {
	used, newest := map[int]bool{}, map[int]int{} // newest is by pid
	for i, e := range entries {
		switch e.event {
		case entered:
			newest[e.pid] = i
		case holds, wrote, left:
			if g, ok := newest[e.pid]; ok {
				used[g] = true
			}
		}
	}
	return used
}

func (h *history) enter(e entry, used bool) {
	h.holds++
	if used {
		if e.token.Compare(h.newest) <= 0 {
			h.ordered = false
		}
		h.newest = e.token
		for _, o := range h.open {
			o.others++
		}
	}
	h.open[e.pid] = &hold{}
}

// end closes the open hold of pid.
func (h *history) end(pid int) {
	if o := h.open[pid]; o != nil {
		h.overlaps += o.certain
		delete(h.open, pid)
	}
}
