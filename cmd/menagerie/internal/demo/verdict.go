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
	// others counts the grants that came while this one was open, and othersAtWrite how
	// many of them there were when this hold last wrote.
	others        int
	othersAtWrite int
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
// A hold lasts until it is left, or until its process was killed by the demo, which knows
// when that was. A process that lost its lease cannot say when it stopped to hold (it may
// have been asleep), and one that somebody else killed cannot say anything: their holds
// overlap with a later one if they have still written anything after the later one began.
func judge(entries []entry) history {
	h := history{open: map[int]*hold{}, ordered: true}
	for _, e := range entries {
		switch e.event {
		case entered:
			h.enter(e)
		case wrote:
			if o := h.open[e.pid]; o != nil {
				o.othersAtWrite = o.others
			}
		case left, killed:
			h.end(e.pid, func(o *hold) int { return o.others })
		case lost, died:
			if e.event == lost {
				h.lost++
			}
			h.end(e.pid, func(o *hold) int { return o.othersAtWrite })
		}
	}
	for pid := range h.open { // a process that never ended its hold held it to the end
		h.end(pid, func(o *hold) int { return o.others })
	}
	return h
}

func (h *history) enter(e entry) {
	h.holds++
	if h.holds > 1 && e.token.Compare(h.newest) <= 0 {
		h.ordered = false
	}
	h.newest = e.token
	for _, o := range h.open {
		o.others++
	}
	h.open[e.pid] = &hold{}
}

// end closes the open hold of pid; overlaps says with how many others it overlapped.
func (h *history) end(pid int, overlaps func(*hold) int) {
	if o := h.open[pid]; o != nil {
		h.overlaps += overlaps(o)
		delete(h.open, pid)
	}
}
